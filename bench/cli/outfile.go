package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// outFile is a file for output. A regular file is written under a temporary name
// beside it and renamed when complete. A pipe or device is written directly.
type outFile struct {
	name string
	mode fs.FileMode
	// device is open for writing where name is no regular file.
	device *os.File
}

// newFile is the mode of a file that does not exist yet.
const newFile = 0o644

// openOut checks that the file a flag names can be written, before anything is
// measured. It returns nil for an empty name. Without replace, a non-empty file
// is an error.
func openOut(flag, name string, replace bool) (*outFile, error) {
	if name == "" {
		return nil, nil
	}
	if name == "-" {
		return nil, &usageError{text: flag + ": - is no file", hint: "use /dev/stdout for standard output, or ./- for a file of that name"}
	}
	// The file that a link leads to is replaced, not the link.
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	o := &outFile{name: name, mode: newFile}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, usagef("%s: %v", flag, err)
	case info.IsDir():
		return nil, usagef("%s: %s is a folder", flag, name)
	case !info.Mode().IsRegular():
		if o.device, err = os.OpenFile(name, os.O_WRONLY, 0); err != nil {
			return nil, usagef("%s: %v", flag, err)
		}
		return o, nil
	case info.Size() > 0 && !replace:
		return nil, &usageError{text: fmt.Sprintf("%s: %s exists", flag, name), hint: "use another name, or --force to replace it"}
	default:
		o.mode = info.Mode().Perm()
	}
	trial, err := o.beside()
	if err != nil {
		return nil, usagef("%s: cannot write in %s: %v", flag, filepath.Dir(name), errors.Unwrap(err))
	}
	return o, errors.Join(trial.Close(), os.Remove(trial.Name()))
}

// beside creates a temporary file in the same folder.
func (o *outFile) beside() (*os.File, error) {
	return os.CreateTemp(filepath.Dir(o.name), "."+filepath.Base(o.name)+".*")
}

// write fills the file with the output of text. On nil it does nothing.
func (o *outFile) write(text func(io.Writer) error) (err error) {
	if o == nil {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", o.name, err)
		}
	}()
	if o.device != nil {
		return errors.Join(text(o.device), o.device.Close())
	}
	f, err := o.beside()
	if err != nil {
		return err
	}
	if err = errors.Join(text(f), f.Chmod(o.mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), o.name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
