package report

import (
	"bytes"
	"cmp"
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

// longestFault bounds what a file can put into an error message, in runes.
const longestFault = 200

// ErrVersion says that a document is a result, but of another version of the
// schema than this program reads.
var ErrVersion = errors.New("unsupported schema")

// Read reads a saved result, or a list of them, and checks it against the JSON
// Schema, so that no figure that is absent is taken for a zero. Fields that the
// schema does not name are ignored: a later version of the program may have added
// them.
func Read(r io.Reader) ([]bench.Result, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("too large for a result: more than %s", size(MaxBytes))
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("not a result: the input is empty")
	}
	// Into plain float64 first: numbers out of all range end here.
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, position(data, err)
	}
	list, several := doc.([]any)
	if !several {
		list = []any{doc}
		data = slices.Concat([]byte("["), data, []byte("]"))
	}
	if len(list) == 0 || !short(list) {
		return nil, fmt.Errorf("not a result: an empty list, or one with more than %d items", maxItems)
	}
	for i, item := range list {
		err := check(item)
		if err != nil && several {
			err = fmt.Errorf("result %d of %d: %w", i+1, len(list), err)
		}
		if err != nil {
			return nil, err
		}
	}
	var results []bench.Result
	err = json.Unmarshal(data, &results)
	return results, err
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
		return errors.New("not a result: not a JSON object")
	}
	switch version, ok := object["schema"].(string); {
	case !ok:
		return fmt.Errorf("not a result: no %q: %q field", "schema", bench.Schema)
	case version != bench.Schema:
		return fmt.Errorf("%w %q, want %q", ErrVersion, clip(version, longestFault), bench.Schema)
	}
	err := resultSchema().Validate(doc)
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
		faults = append(faults[:most], fmt.Sprintf("and %d more", n-most))
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
		*faults = append(*faults, fmt.Sprintf("%s: %s", location(err.InstanceLocation), clip(clean(what), longestFault)))
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
		if _, err := strconv.Atoi(p); err == nil {
			b.WriteString("[" + p + "]")
		} else {
			b.WriteString("." + p)
		}
	}
	name := strings.TrimPrefix(b.String(), ".")
	return cmp.Or(clip(clean(name), longestFault), "the document")
}

// resultSchema is the schema, compiled. It is part of the program: a fault in it is
// one of ours.
var resultSchema = sync.OnceValue(func() *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(assets.ResultSchema()))
	if err != nil {
		panic(err)
	}
	const name = "armrepro-v1.schema.json"
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, doc); err != nil {
		panic(err)
	}
	return c.MustCompile(name)
})
