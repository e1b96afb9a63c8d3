package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"armrepro/bench"
)

var update = flag.Bool("update", false, "write the golden files")

var extensions = map[string]string{"text": "txt", "markdown": "md", "csv": "csv", "json": "json"}

func TestGoldens(t *testing.T) {
	t.Parallel()
	for name, fixture := range fixtures {
		for _, format := range Formats() {
			t.Run(name+"/"+format, func(t *testing.T) {
				t.Parallel()
				got := write(t, format, Options{}, fixture())
				golden(t, name+"."+extensions[format], got)
			})
		}
	}
}

// TestOptions prints what only an option brings about.
func TestOptions(t *testing.T) {
	t.Parallel()
	unsure := warningsResult()
	unsure.Machine.CPU.Product = "Ampere Altra or Altra Max"
	otherSettings := validResult()
	otherSettings.Settings.Connections = 64
	otherSettings.Machine.CPU.Product = ""
	for _, tt := range []struct {
		name    string
		format  string
		opts    Options
		results []bench.Result
	}{
		{"references.txt", "text", Options{References: true}, []bench.Result{unsure}},
		{"references.md", "markdown", Options{References: true}, []bench.Result{unsure}},
		{"references-settings.txt", "text", Options{References: true}, []bench.Result{otherSettings}},
		{"references-none.txt", "text", Options{References: true}, []bench.Result{builtinResult(), invalidResult()}},
		{"color.txt", "text", Options{Color: true}, []bench.Result{invalidResult()}},
		{"narrow.txt", "text", Options{Width: 40, References: true}, []bench.Result{validResult()}},
		{"wide-terminal.txt", "text", Options{Width: 120}, []bench.Result{manyRunsResult()}},
		{"two.txt", "text", Options{}, []bench.Result{validResult(), builtinResult()}},
		{"two.md", "markdown", Options{}, []bench.Result{warningsResult(), invalidResult()}},
		{"two.csv", "csv", Options{}, []bench.Result{validResult(), builtinResult()}},
		{"two.json", "json", Options{}, []bench.Result{validResult(), builtinResult()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			golden(t, filepath.Join("options", tt.name), write(t, tt.format, tt.opts, tt.results...))
		})
	}
}

func write(t testing.TB, format string, opts Options, results ...bench.Result) string {
	t.Helper()
	var out strings.Builder
	if err := Write(&out, format, results, opts); err != nil {
		t.Fatalf("write %s: %v", format, err)
	}
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestWidth holds every line of the text format to the terminal's width.
func TestWidth(t *testing.T) {
	t.Parallel()
	for name, fixture := range fixtures {
		for _, width := range []int{0, 40, 60, 80, 100, 120} {
			out := write(t, "text", Options{Width: width, References: true}, fixture())
			limit := width
			if width == 0 {
				limit = defaultWidth
			}
			if name == "wide" {
				limit = max(limit, 41) // for a latency of hours
			}
			for line := range strings.Lines(out) {
				if n := text.StringWidth(strings.TrimSuffix(line, "\n")); n > limit {
					t.Errorf("%s at width %d: line of %d columns: %s", name, width, n, line)
				}
			}
		}
	}
}

// TestMissing checks that what was not measured is never printed as a figure.
func TestMissing(t *testing.T) {
	t.Parallel()
	labels := []string{"Avg latency", "p50", "p90", "p99",
		"gateway", "waits for a core", "upstream", "load", "etcd + armrepro", "other processes", "steal"}
	for _, format := range []string{"text", "markdown"} {
		rows := 0
		for line := range strings.Lines(write(t, format, Options{}, missingResult())) {
			line = strings.ReplaceAll(line, "&emsp;", "")
			cells := strings.FieldsFunc(strings.TrimSpace(line), func(r rune) bool { return r == '│' || r == '|' })
			if len(cells) < 2 || !slices.Contains(labels, strings.TrimSpace(cells[0])) {
				continue
			}
			rows++
			for _, c := range cells[1:] {
				if c = strings.TrimSpace(c); c != "" && c != missing {
					t.Errorf("%s: a figure that is missing was printed: %s", format, line)
				}
			}
		}
		// The memory rows repeat four of the labels.
		if want := 2 * (len(labels) + 4); rows != want {
			t.Errorf("%s: %d rows, want %d", format, rows, want)
		}
	}
	records := readCSV(t, write(t, "csv", Options{}, missingResult()))
	for i, name := range records[0] {
		if strings.HasPrefix(name, "latency_") || strings.HasPrefix(name, "cpu_") || strings.HasPrefix(name, "rss_") {
			for _, rec := range records[1:] {
				if rec[i] != "" {
					t.Errorf("csv: %s = %q, want it empty", name, rec[i])
				}
			}
		}
	}
}

// TestBuiltinIsNotAPISIX looks for the built-in gateway's label wherever its
// figures are.
func TestBuiltinIsNotAPISIX(t *testing.T) {
	t.Parallel()
	r := builtinResult()
	// The name in a file does not make it another gateway.
	r.Gateway.Name = "APISIX"
	for _, format := range []string{"text", "markdown"} {
		out := write(t, format, Options{References: true}, r)
		const label = "armrepro's built-in gateway, not APISIX"
		// The heading, a table for each scenario, the settings.
		if got, want := strings.Count(out, label), 2+len(r.Scenarios); got < want {
			t.Errorf("%s: %q stands there %d times, want at least %d", format, label, got, want)
		}
		if strings.Contains(out, "×") {
			t.Errorf("%s: compared with a published figure", format)
		}
	}
}

// TestInvalidIsNotCompared checks the ways in which a result does not count.
func TestInvalidIsNotCompared(t *testing.T) {
	t.Parallel()
	flagged := validResult()
	flagged.Warnings = []bench.Warning{{Code: "errors", Text: "12 errors", Invalid: true}}
	shaken := validResult()
	shaken.Warnings = []bench.Warning{{Code: "spread", Text: "31 %", Disturbed: true}}
	unknown := validResult()
	unknown.Verdict = "splendid"
	for name, r := range map[string]bench.Result{
		"disturbed by a warning": shaken, "unknown verdict": unknown,
		"verdict": invalidResult(), "warning": flagged, "interrupted": interruptedResult(), "disturbed": disturbedResult(),
	} {
		for _, format := range []string{"text", "markdown"} {
			out := write(t, format, Options{References: true}, r)
			for _, no := range []string{"Gateway: ", "×", "Graviton3", "Valid"} {
				if strings.Contains(out, no) {
					t.Errorf("%s, %s: contains %q", name, format, no)
				}
			}
		}
	}
}

// TestSummary holds the summary to what a small terminal shows.
func TestSummary(t *testing.T) {
	t.Parallel()
	fixtures := maps.Clone(fixtures)
	fixtures["many scenarios"] = func() bench.Result {
		r := validResult()
		r.Scenarios = slices.Repeat(r.Scenarios, 5)
		return r
	}
	for name, fixture := range fixtures {
		var out strings.Builder
		if err := Summary(&out, fixture()); err != nil {
			t.Fatal(err)
		}
		checkPrintable(t, name, out.String())
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) > summaryLines {
			t.Errorf("%s: %d lines, want at most %d", name, len(lines), summaryLines)
		}
		for _, line := range lines {
			if n := text.StringWidth(line); n > defaultWidth {
				t.Errorf("%s: line of %d columns: %s", name, n, line)
			}
		}
		if name != "hostile" && name != "many scenarios" {
			golden(t, filepath.Join("summary", name+".txt"), out.String())
		}
	}
	if err := Summary(failingWriter{os.ErrClosed}, validResult()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed writer: %v", err)
	}
}

func readCSV(t testing.TB, s string) [][]string {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(s)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func TestCSV(t *testing.T) {
	t.Parallel()
	for name, fixture := range fixtures {
		r := fixture()
		records := readCSV(t, write(t, "csv", Options{}, r))
		// Every run, wherever it is in a result, has requests.
		runs := strings.Count(write(t, "json", Options{}, r), `"requests":`)
		if got := len(records) - 1; got != runs {
			t.Errorf("%s: %d lines, want one for each of %d runs", name, got, runs)
		}
		for _, rec := range records[1:] {
			for i, field := range rec {
				if _, err := strconv.ParseFloat(field, 64); err != nil && field != "" && strings.ContainsRune("=+-@\t\r", rune(field[0])) {
					t.Errorf("%s: %s = %q is a formula to a spreadsheet", name, records[0][i], field)
				}
			}
		}
	}
}

// sgr is the only escape sequence that a report contains, in color.
var sgr = regexp.MustCompile(`\x1b\[[0-9;]+m`)

// checkPrintable fails if out would do more to a terminal than print.
func checkPrintable(t testing.TB, format, out string) {
	t.Helper()
	for _, r := range strings.ReplaceAll(out, "\n", "") {
		if unprintable(r) {
			t.Errorf("%s: contains the unprintable %U", format, r)
		}
	}
}

// TestHostile puts escape sequences into every string that a result has.
func TestHostile(t *testing.T) {
	t.Parallel()
	r := warningsResult()
	fill(reflect.ValueOf(&r).Elem())
	r.Verdict = bench.Valid
	for _, format := range Formats() {
		checkPrintable(t, format, write(t, format, Options{References: true}, r))
	}
	colored := write(t, "text", Options{Color: true}, r)
	checkPrintable(t, "text", sgr.ReplaceAllString(colored, ""))
	md := write(t, "markdown", Options{References: true}, r)
	if strings.Contains(md, "<b>") || strings.Contains(md, "[x](y)") {
		t.Errorf("markup of a file got into the Markdown:\n%s", md)
	}
	for line := range strings.Lines(md) {
		if bars := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); strings.HasPrefix(line, "| ") && bars != 5 {
			t.Errorf("%d cell borders, want 5: %s", bars, line)
		}
	}
}

// fill sets every string within v.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{hostile: "Vulnerable" + hostile}))
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"Neoverse N1", "Neoverse N1"},
		{" a\tb\r\nc ", "a b c"},
		{"\x1b[31mred", `\u001b[31mred`},
		{"\u009b2J", `\u009b2J`},
		{"\x07\x00", `\u0007\u0000`},
		{"a\u202eb\u200b", `a\u202eb\u200b`},
		{"a\xff", "a\ufffd"},
		{"\U000e0001", `\udb40\udc01`},
		{"서버 é", "서버 é"},
	} {
		if got := clean(tt.in); got != tt.want {
			t.Errorf("clean(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ got, want string }{
		{size(0), "0.0 B"}, {size(1023), "1023.0 B"}, {size(1 << 20), "1.0 MiB"}, {size(3 << 29), "1.5 GiB"},
		{pageSize(4096), "4 KiB"}, {pageSize(65536), "64 KiB"}, {pageSize(1000), "1000 B"},
		{microseconds(1025), "1.025 ms"}, {rate(15640.38), "15640.38"},
		{rate(0), "0.00"}, {rate(0.5), "0.50"}, {rate(0.0132), "0.013"}, {rate(0.01), "0.010"}, {rate(3e-20), "3e-20"}, {percent(0.973), "97.3 %"},
		{seconds(60), "60 s"}, {seconds(0.5), "0.5 s"},
		{plural(1, "run"), "1 run"}, {plural(0, "run"), "0 runs"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	err := Write(&bytes.Buffer{}, "xml", nil, Options{})
	if err == nil || !strings.Contains(err.Error(), `unknown format "xml"; use text, markdown, csv or json`) {
		t.Errorf("unknown format: %v", err)
	}
	full := errors.New("disk full")
	for _, format := range Formats() {
		if err := Write(failingWriter{full}, format, []bench.Result{validResult()}, Options{}); !errors.Is(err, full) {
			t.Errorf("%s on a full disk: %v", format, err)
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
