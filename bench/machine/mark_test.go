package machine

import "testing"

// TestMarkedProduct reads what firmware writes, trade marks included.
func TestMarkedProduct(t *testing.T) {
	t.Parallel()
	n1 := midr{implementer: 0x41, part: 0xd0c, variant: 3, revision: 1}
	for text, want := range map[string]string{
		"Ampere(R) Altra(R) Processor":     "Ampere Altra",
		"Ampere(R) Altra(R) Max Processor": "Ampere Altra Max",
		"AWS Graviton2":                    "Graviton2",
		"something else":                   "",
	} {
		if got, _ := markedProduct(n1, text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
