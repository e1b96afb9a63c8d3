package main

import (
	"fmt"
	"os"
	"path/filepath"

	"armrepro/bench"
	benchreport "armrepro/bench/report"
)

// saveFile is where a result is going to be saved: a file beside the one that
// was named, which takes its name when it is complete. It is made before
// anything is measured, so that a folder that cannot be written to is known in
// time.
type saveFile struct {
	name string
	file *os.File
}

// createSave makes the file; nothing for an empty name.
func createSave(name string) (*saveFile, error) {
	if name == "" {
		return &saveFile{}, nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, usagef("--save: %s is a folder", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return nil, usagef("--save: %v", err)
	}
	return &saveFile{name, f}, nil
}

// write saves the result under the name that was given.
func (s *saveFile) write(r bench.Result) error {
	if s.file == nil {
		return nil
	}
	const permissions = 0o644
	err := benchreport.Write(s.file, "json", []bench.Result{r}, benchreport.Options{})
	if err == nil {
		err = s.file.Chmod(permissions)
	}
	if closeErr := s.file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(s.file.Name(), s.name)
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", s.name, err)
	}
	s.file = nil
	return nil
}

// discard removes the file unless the result was saved.
func (s *saveFile) discard() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
}
