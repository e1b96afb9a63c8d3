package machine

import "slices"

// gatewayFeatures are the features of a CPU that matter to a gateway, by
// architecture: atomics (LSE) for locks and counters, crc32, aes and hashes for TLS,
// vectors for parsing, pointer authentication for its cost.
var gatewayFeatures = map[string][]string{
	"arm64": {"atomics", "crc32", "aes", "pmull", "sha2", "sve", "sve2", "pauth"},
	"amd64": {"aes", "pclmulqdq", "sha_ni", "sse4_2", "bmi2", "avx2", "avx512f", "vaes"},
}

// FeatureNames lists all features that Detect looks for on an architecture.
func FeatureNames(arch string) []string { return gatewayFeatures[arch] }

// selectFeatures keeps of the kernel's list what matters. A list that is there
// but has none of them is not nil.
func selectFeatures(arch string, all []string) []string {
	found := []string{}
	for _, f := range gatewayFeatures[arch] {
		const kernels = "paca" // its name for pauth
		if slices.Contains(all, f) || f == "pauth" && slices.Contains(all, kernels) {
			found = append(found, f)
		}
	}
	return found
}
