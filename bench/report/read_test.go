package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"armrepro/assets"
	"armrepro/bench"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, fixture := range fixtures {
		first := write(t, "json", Options{}, fixture())
		r, err := Read(strings.NewReader(first))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(first, write(t, "json", Options{}, r...)); diff != "" {
			t.Errorf("%s (-first +second):\n%s", name, diff)
		}
		// Invalid UTF-8 cannot survive JSON.
		if diff := cmp.Diff([]bench.Result{fixture()}, r); diff != "" && name != "hostile" {
			t.Errorf("%s (-written +read):\n%s", name, diff)
		}
	}
}

// TestFixturesFollowSchema checks them to the letter: Read would forgive a
// field that the schema does not name.
func TestFixturesFollowSchema(t *testing.T) {
	t.Parallel()
	schema := resultSchema()
	for name, fixture := range fixtures {
		var doc any
		if err := json.Unmarshal([]byte(write(t, "json", Options{}, fixture())), &doc); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchemaNamesEveryField keeps the schema and the types together.
func TestSchemaNamesEveryField(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	if err := json.Unmarshal(assets.ResultSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	resolve := func(s map[string]any) map[string]any {
		for {
			ref, ok := s["$ref"].(string)
			if !ok {
				return s
			}
			s = schema["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
	}
	var walk func(path string, typ reflect.Type, s map[string]any)
	walk = func(path string, typ reflect.Type, s map[string]any) {
		s = resolve(s)
		switch {
		case typ.Kind() == reflect.Pointer:
			walk(path, typ.Elem(), s)
		case typ.Kind() == reflect.Slice:
			items, ok := s["items"].(map[string]any)
			if !ok {
				t.Errorf("%s: the schema has no items", path)
				return
			}
			walk(path+"[]", typ.Elem(), items)
		case typ == reflect.TypeFor[time.Time](), typ.Kind() != reflect.Struct:
		default:
			properties, _ := s["properties"].(map[string]any)
			named := map[string]bool{}
			for _, f := range jsonFields(typ) {
				property, ok := properties[f.name].(map[string]any)
				if !ok {
					if s["additionalProperties"] == false {
						t.Errorf("%s.%s: the schema does not name it", path, f.name)
					}
					continue
				}
				walk(path+"."+f.name, f.typ, property)
				named[f.name] = true
			}
			for name := range properties {
				if !named[name] {
					t.Errorf("%s.%s: the schema names it, the type does not", path, name)
				}
			}
		}
	}
	walk("result", reflect.TypeFor[bench.Result](), schema)
}

type jsonField struct {
	name string
	typ  reflect.Type
}

func jsonFields(typ reflect.Type) []jsonField {
	var fields []jsonField
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			fields = append(fields, jsonFields(f.Type)...)
		} else {
			fields = append(fields, jsonField{name, f.Type})
		}
	}
	return fields
}

// TestSeveral reads back the one document that several results are.
func TestSeveral(t *testing.T) {
	t.Parallel()
	want := []bench.Result{validResult(), builtinResult()}
	got, err := Read(strings.NewReader(write(t, "json", Options{}, want...)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}

func TestReadIgnoresNewerFields(t *testing.T) {
	t.Parallel()
	doc := write(t, "json", Options{}, validResult())
	newer := strings.NewReplacer(
		`"tool": {`, `"power": {"watts": [12.5]}, "tool": {"commit": "abc",`,
		`"cpu": {`, `"cpu": {"gpu": 1,`,
		`"requests":`, `"retries": null, "requests":`,
		`"warnings": []`, `"warnings": [{"code": "new", "text": "new", "severity": 3}]`,
	).Replace(doc)
	r, err := Read(strings.NewReader(newer))
	if err != nil {
		t.Fatal(err)
	}
	want := validResult()
	want.Warnings = []bench.Warning{{Code: "new", Text: "new"}}
	if diff := cmp.Diff([]bench.Result{want}, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadErrors(t *testing.T) {
	t.Parallel()
	valid := write(t, "json", Options{}, validResult())
	change := func(old, new string) string {
		if !strings.Contains(valid, old) {
			t.Fatalf("the fixture has no %s", old)
		}
		return strings.Replace(valid, old, new, 1)
	}
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", "the input is empty"},
		{"white space", " \n\t", "the input is empty"},
		{"text", "Running 1m test", "not JSON, line 1"},
		{"cut off", valid[:len(valid)/2], "not JSON, line"},
		{"two documents", valid + valid, "not JSON, line"},
		{"empty list", "[]", "an empty list"},
		{"list with something else", "[" + valid + ", 1]", "result 2 of 2: not a result: not a JSON object"},
		{"list of lists", "[[" + valid + "]]", "result 1 of 1: not a result: not a JSON object"},
		{"null", "null", "not a JSON object"},
		{"number", "1", "not a JSON object"},
		{"other document", `{"name": "x"}`, `no "schema": "armrepro/v1" field`},
		{"schema of a wrong type", `{"schema": 1}`, `no "schema": "armrepro/v1" field`},
		{"later schema", change("armrepro/v1", "armrepro/v2"), `unsupported schema "armrepro/v2"`},
		{"hostile schema", change("armrepro/v1", `\u001b[2J`), `unsupported schema "\x1b[2J"`},
		{"only a schema", `{"schema": "armrepro/v1"}`, "missing properties"},
		{"missing figure", change(`"qps": 15640.38,`, ""), "scenarios[0].runs[0]: missing property 'qps'"},
		{"figure as text", change(`"qps": 15640.38`, `"qps": "15640.38"`), "scenarios[0].runs[0].qps: got string, want number"},
		{"figure null", change(`"qps": 15640.38`, `"qps": null`), "scenarios[0].runs[0].qps: got null, want number"},
		{"negative", change(`"qps": 15640.38`, `"qps": -1`), "scenarios[0].runs[0].qps: minimum"},
		{"out of range", change(`"qps": 15640.38`, `"qps": 1e999`), "1e999"},
		{"not a number", change(`"qps": 15640.38`, `"qps": NaN`), "not JSON"},
		{"fraction of a count", change(`"connections": 16`, `"connections": 16.5`), "settings.connections: got number, want integer"},
		{"huge count", change(`"requests": 938422`, `"requests": 1e300`), "scenarios[0].runs[0].requests: maximum"},
		{"time", change("2026-09-28T10:56:52Z", "yesterday"), "started: 'yesterday' is not valid date-time"},
		{"verdict", change(`"verdict": "valid"`, `"verdict": "fine"`), "verdict: value must be one of"},
		{"kind", change(`"kind": "native"`, `"kind": "magic"`), "gateway.kind: value must be one of"},
		{"scenarios of a wrong type", change(`"scenarios": [`, `"scenarios": {}, "x": [`), "scenarios: got object, want array"},
		{"nesting", strings.Repeat("[", 20000), "not JSON"},
		{"long text", change(`"v0.1.0"`, `"`+strings.Repeat("x", 5000)+`"`), "tool.version: maxLength"},
		{"many faults", `{"schema": "armrepro/v1", "tool": 1, "started": 1, "machine": 1, "gateway": 1, "etcd": 1,
			"settings": 1, "scenarios": 1, "control": 1, "warnings": 1, "verdict": 1}`, "and 7 more"},
		{"too many items", change(`"warnings": []`, `"warnings": [`+strings.Repeat("{},", 10000)+`{}]`), "more than 10000 items"},
		{"too many unknown items", change(`"warnings": []`, `"warnings": [], "x": {"y": [[`+strings.Repeat("1,", 10000)+`1]]}`), "more than 10000 items"},
		{"too large", `{"schema": "` + strings.Repeat(" ", MaxBytes), "too large"},
	} {
		_, err := Read(strings.NewReader(tt.in))
		if err == nil {
			t.Errorf("%s: no error, want %q", tt.name, tt.want)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, err, tt.want)
		}
		if want := strings.HasPrefix(tt.want, "unsupported schema"); errors.Is(err, ErrVersion) != want {
			t.Errorf("%s: is ErrVersion: %t, want %t", tt.name, !want, want)
		}
		if len(err.Error()) > 1000 {
			t.Errorf("%s: an error of %d bytes", tt.name, len(err.Error()))
		}
		checkPrintable(t, tt.name, err.Error())
	}
	broken := errors.New("broken pipe")
	if _, err := Read(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, fixture := range fixtures {
		f.Add([]byte(write(f, "json", Options{}, fixture())))
	}
	f.Add([]byte(`{"schema":"armrepro/v1","QPS":1e999}`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(bytes.NewReader(data))
		if err != nil {
			checkPrintable(t, "error", err.Error())
			return
		}
		for _, format := range Formats() {
			checkPrintable(t, format, write(t, format, Options{References: true}, r...))
		}
		first := write(t, "json", Options{}, r...)
		again, err := Read(strings.NewReader(first))
		if err != nil {
			t.Fatalf("read what was written: %v", err)
		}
		if second := write(t, "json", Options{}, again...); second != first {
			t.Fatalf("another document after a round trip:\n%s", cmp.Diff(first, second))
		}
	})
}
