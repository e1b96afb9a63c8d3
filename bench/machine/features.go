package machine

import "slices"

// gatewayFeatures are the features of a CPU that matter to a gateway, by
// architecture, as the kernel names them: atomics (LSE) for locks and
// counters, crc32, aes and hashes for TLS, vectors for parsing, pointer
// authentication for its cost.
var gatewayFeatures = map[string][]string{
	"arm64": {"atomics", "crc32", "aes", "pmull", "sha2", "sve", "sve2", "paca"},
	"amd64": {"aes", "pclmulqdq", "sha_ni", "sse4_2", "bmi2", "avx2", "avx512f", "vaes"},
}

// featureNames are the names that people know a feature by, where they differ.
var featureNames = map[string]string{"paca": "pauth"}

// FeatureNames lists all features that Detect looks for on an architecture.
func FeatureNames(arch string) []string { return displayNames(gatewayFeatures[arch]) }

// selectFeatures keeps of the kernel's list what matters. A list that is there
// but has none of them is not nil.
func selectFeatures(arch string, all []string) []string {
	found := []string{}
	for _, f := range gatewayFeatures[arch] {
		if slices.Contains(all, f) {
			found = append(found, f)
		}
	}
	return displayNames(found)
}

func displayNames(features []string) []string {
	names := make([]string, 0, len(features))
	for _, f := range features {
		if name, ok := featureNames[f]; ok {
			f = name
		}
		names = append(names, f)
	}
	return names
}
