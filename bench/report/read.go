package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"armrepro/assets"
	"armrepro/bench"
)

// MaxBytes is the largest result that Read takes. A run with its histogram
// needs a few kilobytes.
const MaxBytes = 8 << 20

// maxItems is the longest list that Read takes, known to the schema or not: a
// fault in each of millions of items would be looked for and reported.
const maxItems = 10000

// ErrVersion says that a document is a result, but of another version of the
// schema than this program reads.
var ErrVersion = errors.New("unsupported schema")

// Read reads one saved result and checks it against the JSON Schema, so that
// no figure that is absent is taken for a zero. Fields that the schema does not
// name are ignored: a later version of the program may have added them.
func Read(r io.Reader) (bench.Result, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return bench.Result{}, err
	}
	if len(data) > MaxBytes {
		return bench.Result{}, fmt.Errorf("more than %s, too large for a result", size(MaxBytes))
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return bench.Result{}, errors.New("not a result: nothing in it")
	}
	// Into plain float64 first: numbers out of all range end here.
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		return bench.Result{}, position(data, err)
	}
	if err := check(doc); err != nil {
		return bench.Result{}, err
	}
	var result bench.Result
	if err := json.Unmarshal(data, &result); err != nil {
		return bench.Result{}, err
	}
	return result, nil
}

// position adds the line to a syntax error.
func position(data []byte, err error) error {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return err
	}
	offset := min(max(int(syntax.Offset), 0), len(data))
	return fmt.Errorf("not JSON, line %d: %w", 1+bytes.Count(data[:offset], []byte("\n")), err)
}

// check says what of doc does not follow the schema.
func check(doc any) error {
	object, ok := doc.(map[string]any)
	if !ok {
		return errors.New("not a result: the document is no JSON object")
	}
	switch schema := object["schema"].(type) {
	case string:
		if schema != bench.Schema {
			return fmt.Errorf("%w %q, want %q", ErrVersion, clip(schema), bench.Schema)
		}
	default:
		return fmt.Errorf("not a result: it has no %q to say %q", "schema", bench.Schema)
	}
	if !short(doc) {
		return fmt.Errorf("not a result: a list in it has more than %d items", maxItems)
	}
	schema, err := resultSchema()
	if err != nil {
		return err
	}
	err = schema.Validate(doc)
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	var faults []string
	collect(invalid, &faults)
	const most = 3
	switch n := len(faults); {
	case n == 0:
		return nil
	case n > most:
		return fmt.Errorf("%s; and %d more", strings.Join(faults[:most], "; "), n-most)
	}
	return errors.New(strings.Join(faults, "; "))
}

// short reports whether no list in v is longer than maxItems.
func short(v any) bool {
	switch v := v.(type) {
	case []any:
		return len(v) <= maxItems && !slices.ContainsFunc(v, func(item any) bool { return !short(item) })
	case map[string]any:
		for _, item := range v {
			if !short(item) {
				return false
			}
		}
	}
	return true
}

// collect appends the faults that err stands for, one a leaf, less those about
// fields that the schema does not name.
func collect(err *jsonschema.ValidationError, faults *[]string) {
	if len(err.Causes) == 0 {
		if _, ok := err.ErrorKind.(*kind.AdditionalProperties); ok {
			return
		}
		what := err.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		*faults = append(*faults, fmt.Sprintf("%s: %s", location(err.InstanceLocation), clip(clean(what))))
		return
	}
	for _, cause := range err.Causes {
		collect(cause, faults)
	}
}

// location writes a JSON pointer as people do: scenarios[0].runs[1].qps.
func location(path []string) string {
	var b strings.Builder
	for _, p := range path {
		switch _, err := strconv.Atoi(p); {
		case err == nil:
			b.WriteString("[" + p + "]")
		case b.Len() > 0:
			b.WriteString("." + p)
		default:
			b.WriteString(p)
		}
	}
	if b.Len() == 0 {
		return "the document"
	}
	return clip(clean(b.String()))
}

// clip shortens what a file made too long for an error message.
func clip(s string) string {
	const most = 200
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// resultSchema compiles the schema once.
var resultSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(assets.ResultSchema()))
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	const name = "armrepro-v1.schema.json"
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	schema, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return schema, nil
})
