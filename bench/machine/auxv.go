package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"armrepro/proxycheck/process"
)

// Keys of the auxiliary vector (include/uapi/linux/auxvec.h).
const (
	atPageSize = 6
	atHWCap    = 16
	atHWCap2   = 26
)

// auxv is the auxiliary vector that the kernel gave a process.
type auxv map[uint64]uint64

// readAuxv reads that of this process, in a recorded tree that of the process
// which recorded it: pairs of little-endian words of 64 bits, key and value.
func readAuxv(root fs.FS) (auxv, error) {
	const entry = 16
	b, err := process.ReadFile(root, "proc/self/auxv")
	if err != nil {
		return nil, err
	}
	if len(b) == 0 || len(b)%entry != 0 {
		return nil, errors.New("proc/self/auxv is not that of a 64-bit process")
	}
	v := auxv{}
	for ; len(b) > 0; b = b[entry:] {
		v[binary.LittleEndian.Uint64(b)] = binary.LittleEndian.Uint64(b[8:])
	}
	return v, nil
}

// pageSize is the size of a page in bytes.
func (v auxv) pageSize() (int, error) {
	size := v[atPageSize]
	if size < 1<<12 || size > 1<<16 || size&(size-1) != 0 {
		return 0, fmt.Errorf("AT_PAGESZ in proc/self/auxv is %d", size)
	}
	return int(size), nil
}

// features turns HWCAP of arm64 (arch/arm64/include/uapi/asm/hwcap.h) into the
// names that /proc/cpuinfo has for it, as far as they matter here.
func (v auxv) features() []string {
	var names []string
	for _, f := range []struct {
		key  uint64
		bit  uint
		name string
	}{
		{atHWCap, 3, "aes"}, {atHWCap, 4, "pmull"}, {atHWCap, 6, "sha2"}, {atHWCap, 7, "crc32"},
		{atHWCap, 8, "atomics"}, {atHWCap, 22, "sve"}, {atHWCap, 30, "paca"}, {atHWCap2, 1, "sve2"},
	} {
		if v[f.key]>>f.bit&1 == 1 {
			names = append(names, f.name)
		}
	}
	return names
}
