package main

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// file is an entry of an archive. Its path is relative; fs.ModeDir in the mode
// makes it a folder.
type file struct {
	path string
	mode fs.FileMode
	data []byte
}

// writeCPIO writes files as the archive that Linux unpacks into its first root
// folder: cpio in the format newc, uncompressed. Folders on the way to a file
// are added before it.
// See https://docs.kernel.org/driver-api/early-userspace/buffer-format.html
func writeCPIO(w io.Writer, files []file) error {
	a := &archive{w: w, folders: map[string]bool{".": true}}
	for _, f := range files {
		a.addFolders(path.Dir(f.path))
		a.add(f)
	}
	a.add(file{path: "TRAILER!!!"})
	return a.err
}

type archive struct {
	w       io.Writer
	inode   int
	folders map[string]bool
	err     error
}

func (a *archive) addFolders(dir string) {
	if a.folders[dir] {
		return
	}
	a.addFolders(path.Dir(dir))
	a.folders[dir] = true
	a.add(file{path: dir, mode: fs.ModeDir | 0o755})
}

// add writes a header of 13 numbers in 8 hexadecimal digits, the path, and the
// data, the last two filled up to a multiple of 4 bytes.
func (a *archive) add(f file) {
	const regular, directory, alignment = 0o100000, 0o040000, 4
	if a.err != nil {
		return
	}
	mode, links := uint32(f.mode.Perm()), 1
	switch {
	case f.mode.IsDir():
		mode, links = mode|directory, 2
	case f.mode != 0:
		mode |= regular
	}
	a.inode++
	var header strings.Builder
	header.WriteString("070701")
	for _, field := range []int{
		a.inode, int(mode),
		0, 0, // owner and group
		links,
		0, // time
		len(f.data),
		0, 0, 0, 0, // device numbers
		len(f.path) + 1,
		0, // checksum, of another format
	} {
		fmt.Fprintf(&header, "%08X", field)
	}
	header.WriteString(f.path)
	header.WriteByte(0)
	fill := func(n int) []byte { return make([]byte, -n&(alignment-1)) }
	for _, b := range [][]byte{[]byte(header.String()), fill(header.Len()), f.data, fill(len(f.data))} {
		if _, err := a.w.Write(b); err != nil {
			a.err = fmt.Errorf("write archive: %w", err)
			return
		}
	}
}
