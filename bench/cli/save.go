package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"armrepro/bench"
	benchreport "armrepro/bench/report"
)

// saveFile is where a result is going to be saved. A regular file is written
// beside its place and takes its name when it is complete; anything else, such
// as a pipe or a device, is written to as it is. It is tried before anything is
// measured, so that a place that cannot be written to is known in time.
type saveFile struct {
	name string
	mode fs.FileMode
	// device is open for writing where name is no regular file.
	device *os.File
}

// newFile is the mode of a file that does not exist yet.
const newFile = 0o644

// createSave looks at the place; nothing for an empty name.
func createSave(name string) (*saveFile, error) {
	if name == "" {
		return &saveFile{}, nil
	}
	// The file that a link leads to is replaced, not the link.
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	s := &saveFile{name: name, mode: newFile}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, usagef("--save: %v", err)
	case info.IsDir():
		return nil, usagef("--save: %s is a folder", name)
	case !info.Mode().IsRegular():
		if s.device, err = os.OpenFile(name, os.O_WRONLY, 0); err != nil {
			return nil, usagef("--save: %v", err)
		}
		return s, nil
	default:
		s.mode = info.Mode().Perm()
	}
	trial, err := s.beside()
	if err != nil {
		return nil, usagef("--save: cannot write in %s: %v", filepath.Dir(name), errors.Unwrap(err))
	}
	return s, errors.Join(trial.Close(), os.Remove(trial.Name()))
}

// beside makes a file in the same folder.
func (s *saveFile) beside() (*os.File, error) {
	return os.CreateTemp(filepath.Dir(s.name), "."+filepath.Base(s.name)+".*")
}

// write saves the result.
func (s *saveFile) write(r bench.Result) error {
	if s.name == "" {
		return nil
	}
	var text bytes.Buffer
	err := benchreport.Write(&text, "json", []bench.Result{r}, benchreport.Options{})
	if err == nil {
		err = s.put(text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", s.name, err)
	}
	return nil
}

func (s *saveFile) put(text []byte) error {
	if s.device != nil {
		_, err := s.device.Write(text)
		return errors.Join(err, s.device.Close())
	}
	f, err := s.beside()
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(s.mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), s.name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
