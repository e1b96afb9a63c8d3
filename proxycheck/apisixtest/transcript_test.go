package apisixtest

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorded is one request to a real APISIX and its answer.
type recorded struct {
	title        string
	method, path string
	header       map[string]string
	body         string
	want         answer
}

var curlLine = regexp.MustCompile(`^\$ curl -i (?:-X (\w+) )?(?:-H (Connection: close) )?http://127\.0\.0\.1:\d+(\S+)(?: -H (X-API-KEY: \S+))?(?: -d (.*))?$`)

// readTranscript reads testdata/admin-*.txt: what curl sent to an APISIX of that
// version, and what came back. The Date headers were taken out.
func readTranscript(t *testing.T, name, upstream string) []recorded {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []recorded
	for part := range strings.SplitSeq(strings.ReplaceAll(string(text), "UPSTREAM", upstream), "##### ") {
		if part == "" {
			continue
		}
		title, rest, _ := strings.Cut(part, "\n")
		line, rest, _ := strings.Cut(rest, "\n")
		m := curlLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("%s: %q is no call of curl", name, line)
		}
		rec := recorded{title: title, method: http.MethodGet, path: m[3], body: m[5], header: map[string]string{}}
		if m[1] != "" {
			rec.method = m[1]
		}
		for _, h := range []string{m[2], strings.Replace(m[4], " KEY", " "+testKey, 1)} {
			if name, value, ok := strings.Cut(h, ": "); ok {
				rec.header[name] = value
			}
		}
		head, body, _ := strings.Cut(rest, "\n\n")
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(
			strings.ReplaceAll(head, "Transfer-Encoding", "X-Transfer-Encoding")+"\n\n")), nil)
		if err != nil {
			t.Fatalf("%s: %s: %v", name, title, err)
		}
		rec.want = answer{resp.StatusCode, resp.Header, strings.TrimSpace(body)}
		rec.want.header["Transfer-Encoding"] = rec.want.header["X-Transfer-Encoding"]
		if strings.Contains(head, "Connection: close") {
			rec.want.header.Set("Connection", "close") // which net/http takes out
		}
		all = append(all, rec)
	}
	return all
}

// TestAnswersAsRecorded makes the requests that were made of a real APISIX, and
// compares the answers: status, headers, and JSON but for times and revisions.
func TestAnswersAsRecorded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, version string
		start         func(t *testing.T, version string) *running
	}{
		{"2.15.0", "2.15.0", startFake},
		{"3.18.0", "3.18.0", startFake},
		{"built-in", "3.18.0", startBuiltin},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := test.start(t, test.version)
			all := readTranscript(t, "testdata/admin-"+test.version+".txt", startUpstream(t))
			const least = 25
			if len(all) < least {
				t.Fatalf("%d requests in the transcript", len(all))
			}
			for _, rec := range all {
				compareWithRecorded(t, r, rec)
			}
		})
	}
}

func compareWithRecorded(t *testing.T, r *running, rec recorded) {
	t.Helper()
	url := r.data + rec.path
	isAdmin := strings.HasPrefix(rec.path, adminPath)
	if isAdmin {
		url = r.admin + rec.path
	}
	// The data plane learns of a change a moment after the Admin API has
	// accepted it.
	deadline := time.Now().Add(patience)
	for {
		got := ask(t, rec.method, url, rec.header, rec.body)
		diff := cmp.Diff(comparable(t, rec.want, "/apisix"), comparable(t, got, r.prefix))
		if diff == "" {
			checkSlashes(t, rec.title, r.version, got)
			return
		}
		if isAdmin || rec.method != http.MethodGet || time.Now().After(deadline) {
			t.Errorf("%s (-recorded +answered):\n%s", rec.title, diff)
			return
		}
	}
}

// comparable is what two answers have to share.
func comparable(t *testing.T, a answer, prefix string) map[string]any {
	t.Helper()
	header := map[string][]string{}
	for name, values := range a.header {
		name = http.CanonicalHeaderKey(name)
		switch name {
		case "Date", "Server", "X-Transfer-Encoding", "Content-Length":
		case "X-Ratelimit-Remaining", "X-Ratelimit-Reset":
			// Versions count differently.
			header[name] = nil
		default:
			if len(values) > 0 {
				header[name] = values
			}
		}
	}
	var body any = strings.TrimSpace(a.body)
	switch {
	case strings.HasPrefix(a.body, "<html>"):
		// Newer pages carry a line about APISIX.
		body, _, _ = strings.Cut(a.body, "<hr>")
		body = strings.ReplaceAll(body.(string), "\r\n", "\n")
	case strings.HasPrefix(a.body, "{"):
		var v any
		if err := json.Unmarshal([]byte(a.body), &v); err != nil {
			t.Errorf("%s: %v", a.body, err)
		}
		body = withoutVolatile(v, prefix)
	}
	return map[string]any{"status": a.status, "header": header, "body": body}
}

// withoutVolatile blanks what differs from one time to another.
func withoutVolatile(v any, prefix string) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			switch name {
			case "create_time", "update_time", "createdIndex", "modifiedIndex":
				if n, ok := value.(float64); ok && n > 0 {
					v[name] = "a number"
				}
			case "key":
				if text, ok := value.(string); ok {
					v[name] = strings.TrimPrefix(text, prefix)
				}
			case "error_msg":
				// What is wrong with broken JSON, parsers say in
				// different words.
				const broken = "invalid request body: "
				if text, ok := value.(string); ok && strings.HasPrefix(text, broken) {
					v[name] = broken
				}
			default:
				v[name] = withoutVolatile(value, prefix)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutVolatile(v[i], prefix)
		}
	}
	return v
}

// checkSlashes: the Admin API of 2.x escapes slashes, nothing else does.
func checkSlashes(t *testing.T, title, version string, a answer) {
	t.Helper()
	if a.header.Get("Content-Type") != "application/json" {
		return
	}
	want := 0
	if !isV3(version) {
		want = strings.Count(a.body, "/")
	}
	if escaped := strings.Count(a.body, `\/`); escaped != want {
		t.Errorf("%s: %d slashes are escaped, want %d: %s", title, escaped, want, a.body)
	}
}
