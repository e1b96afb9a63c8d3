//go:build !linux

package embed

import "math"

// freeBytes does not know the disk space here, so it finds no fault with it.
func freeBytes(string) (uint64, error) { return math.MaxUint64, nil }
