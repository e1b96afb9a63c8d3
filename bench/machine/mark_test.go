package machine

import "testing"

// TestMarkedProduct reads what firmware writes, trade marks included.
func TestMarkedProduct(t *testing.T) {
	t.Parallel()
	n1 := midr(0x4130d0c1)
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
