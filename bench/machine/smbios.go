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
	// currentMHz is 0 if unknown.
	currentMHz int
}

// smbiosTable is readable by root only.
const smbiosTable = "sys/firmware/dmi/tables/DMI"

// maxSockets bounds the processors that are read.
const maxSockets = 64

// readSMBIOS finds the processors (type 4) in a table of SMBIOS
// structures (DMTF DSP0134, 6.1 and 7.5): each has a header of type, length
// and handle, its formatted part, and then its strings, each ended by a zero
// byte, with one more zero byte after the last.
func readSMBIOS(root fs.FS) ([]smbiosProcessor, error) {
	b, err := process.ReadFile(root, smbiosTable)
	if err != nil {
		return nil, err
	}
	const header, processor, endOfTable = 4, 4, 127
	var found []smbiosProcessor
	for len(b) >= header && len(found) < maxSockets {
		kind, length := b[0], int(b[1])
		texts, rest, ended := bytes.Cut(b[min(length, len(b)):], []byte{0, 0})
		if length < header || !ended {
			return found, errors.New("the SMBIOS table is cut off or damaged")
		}
		if kind == processor {
			found = append(found, decodeProcessor(b[:length], bytes.Split(texts, []byte{0})))
		}
		if kind == endOfTable {
			break
		}
		b = rest
	}
	if len(found) == 0 {
		return nil, errors.New("the SMBIOS table has no processor")
	}
	return found, nil
}

func decodeProcessor(formatted []byte, texts [][]byte) smbiosProcessor {
	const manufacturer, version, currentSpeed = 0x07, 0x10, 0x16
	// Older versions have shorter structures: what is missing is 0, unknown.
	const longest = 256
	at := append(formatted[:len(formatted):len(formatted)], make([]byte, longest)...)
	text := func(offset int) string {
		// Strings count from 1; 0 means none.
		if n := int(at[offset]); n > 0 && n <= len(texts) {
			return process.Clean(string(texts[n-1]))
		}
		return ""
	}
	return smbiosProcessor{text(manufacturer), text(version), int(binary.LittleEndian.Uint16(at[currentSpeed:]))}
}
