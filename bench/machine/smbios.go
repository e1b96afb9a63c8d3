package machine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"

	"armrepro/proxycheck/process"
)

// smbiosProcessor is what a processor structure of the SMBIOS tables tells. The
// serial number and the asset tag beside it are not read.
type smbiosProcessor struct {
	manufacturer, version string
	// maxMHz and currentMHz are 0 if unknown.
	maxMHz, currentMHz int
}

// smbiosTable is readable by root only.
const smbiosTable = "sys/firmware/dmi/tables/DMI"

func readSMBIOS(root fs.FS) ([]smbiosProcessor, error) {
	b, err := process.ReadFile(root, smbiosTable)
	if err != nil {
		return nil, err
	}
	return parseSMBIOS(b)
}

// maxSockets bounds the processors that are read.
const maxSockets = 64

// parseSMBIOS finds the processors (type 4) in a table of SMBIOS
// structures (DMTF DSP0134, 6.1 and 7.5): each has a header of type, length
// and handle, its formatted part, and then its strings, each ended by a zero
// byte, with one more zero byte after the last.
func parseSMBIOS(b []byte) ([]smbiosProcessor, error) {
	const header, processor, endOfTable = 4, 4, 127
	var found []smbiosProcessor
	for len(b) >= header && len(found) < maxSockets {
		kind, length := b[0], int(b[1])
		if length < header || length > len(b) {
			return found, errDamagedSMBIOS
		}
		formatted, rest := b[:length], b[length:]
		end := bytes.Index(rest, []byte{0, 0})
		if end < 0 {
			return found, errDamagedSMBIOS
		}
		if kind == processor {
			found = append(found, decodeProcessor(formatted, rest[:end]))
		}
		if kind == endOfTable {
			break
		}
		b = rest[end+2:]
	}
	if len(found) == 0 {
		return nil, errors.New("the SMBIOS table has no processor")
	}
	return found, nil
}

var errDamagedSMBIOS = errors.New("the SMBIOS table is cut off or damaged")

func decodeProcessor(formatted, texts []byte) smbiosProcessor {
	const manufacturer, version, maxSpeed, currentSpeed = 0x07, 0x10, 0x14, 0x16
	strings := bytes.Split(texts, []byte{0})
	text := func(offset int) string {
		if offset >= len(formatted) {
			return ""
		}
		// Strings count from 1; 0 means none.
		n := int(formatted[offset])
		if n == 0 || n > len(strings) {
			return ""
		}
		return process.Clean(string(strings[n-1]))
	}
	word := func(offset int) int {
		if offset+2 > len(formatted) {
			return 0
		}
		return int(binary.LittleEndian.Uint16(formatted[offset:]))
	}
	return smbiosProcessor{
		manufacturer: text(manufacturer),
		version:      text(version),
		maxMHz:       word(maxSpeed),
		currentMHz:   word(currentSpeed),
	}
}
