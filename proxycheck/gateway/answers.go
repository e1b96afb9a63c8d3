package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// Dialect is the way in which an Admin API answers.
type Dialect int

// The dialects, by the major version of APISIX that speaks them.
const (
	V2 Dialect = 2
	V3 Dialect = 3
)

// ParseDialect reads v2 or v3.
func ParseDialect(text string) (Dialect, error) {
	switch text {
	case "v2":
		return V2, nil
	case "v3":
		return V3, nil
	}
	return 0, fmt.Errorf("read dialect %q: neither v2 nor v3", text)
}

func (d Dialect) String() string { return "v" + strconv.Itoa(int(d)) }

// encode writes v as the dialect's JSON library does, with a line end: that of
// 2.x escapes slashes.
func (d Dialect) encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only values that JSON has are ever passed in.
		return []byte("{}\n")
	}
	if d == V2 {
		// A slash in JSON is always inside a string.
		return bytes.ReplaceAll(buf.Bytes(), []byte("/"), []byte(`\/`))
	}
	return buf.Bytes()
}

// stored is a route as the Admin API shows it.
type stored struct {
	key              string
	value            object
	created, changed int64 // revisions
}

func (d Dialect) putAnswer(s stored) object {
	if d == V2 {
		return object{"action": "set", "node": object{"key": s.key, "value": s.value}}
	}
	return object{"key": s.key, "value": s.value}
}

func (d Dialect) getAnswer(s stored) object {
	if d == V2 {
		return object{"action": "get", "count": 1, "node": object{"key": s.key, "value": s.value}}
	}
	return d.item(s)
}

func (d Dialect) listAnswer(dir string, all []stored) object {
	items := make([]object, len(all))
	for i, s := range all {
		items[i] = d.item(s)
	}
	if d == V2 {
		return object{"action": "get", "count": len(all), "node": object{"key": dir, "dir": true, "nodes": items}}
	}
	return object{"list": items, "total": len(all)}
}

func (d Dialect) deleteAnswer(key string) object {
	if d == V2 {
		return object{"action": "delete", "deleted": "1", "key": key, "node": object{}}
	}
	return object{"deleted": "1", "key": key}
}

func (d Dialect) item(s stored) object {
	return object{"key": s.key, "value": s.value, "createdIndex": s.created, "modifiedIndex": s.changed}
}

// complete adds what the dialect stores beside what the user gave: 2.x writes
// its defaults out.
func (d Dialect) complete(value object) {
	if d != V2 {
		return
	}
	setDefaults(value, object{"status": 1, "priority": 0})
	if upstream, ok := value["upstream"].(object); ok {
		setDefaults(upstream, object{
			"type": "roundrobin", "scheme": "http", "pass_host": "pass", "hash_on": "vars",
		})
	}
	conf, _ := value["plugins"].(object)
	if limit, ok := conf["limit-count"].(object); ok {
		setDefaults(limit, object{
			"rejected_code": 503, "key": "remote_addr", "key_type": "var", "policy": "local",
			"allow_degradation": false, "show_limit_quota_header": true,
		})
	}
	if prometheus, ok := conf["prometheus"].(object); ok {
		setDefaults(prometheus, object{"prefer_name": false})
	}
}

func setDefaults(o, defaults object) {
	for name, value := range defaults {
		if o[name] == nil {
			o[name] = value
		}
	}
}

// statusTexts are nginx's where they differ from net/http's.
var statusTexts = map[int]string{
	clientGone:                    "Client Closed Request",
	http.StatusServiceUnavailable: "Service Temporarily Unavailable",
	http.StatusGatewayTimeout:     "Gateway Time-out",
}

// writePage answers with nginx's kind of error page.
func writePage(w http.ResponseWriter, code int) {
	text := statusTexts[code]
	if text == "" {
		text = http.StatusText(code)
	}
	title := fmt.Sprintf("%d %s", code, text)
	page := "<html>\r\n<head><title>" + title + "</title></head>\r\n<body>\r\n<center><h1>" + title +
		"</h1></center>\r\n<hr><center>" + Name + "</center>\r\n</body>\r\n</html>\r\n"
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(code)
	fmt.Fprint(w, page)
}

// writeError answers with APISIX's kind of error, chunked as it is there.
func writeError(w http.ResponseWriter, code int, contentType, message string) {
	writeJSON(w, code, contentType, V3.encode(object{"error_msg": message}))
}

func writeJSON(w http.ResponseWriter, code int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h["Transfer-Encoding"] = chunked
	w.WriteHeader(code)
	// An error is the client's going away, which net/http deals with.
	_, _ = w.Write(body)
}
