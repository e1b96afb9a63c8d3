package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"armrepro/proxycheck/etcdhttp"
)

const (
	// adminPath is what every path of the Admin API begins with.
	adminPath = "/apisix/admin/"
	// maxBody bounds the body of a request in bytes, as APISIX does.
	maxBody = 1536 << 10
)

// admin is the Admin API: the routes, and the list of plugins.
type admin struct {
	store  *store
	key    string
	server []string
	log    zerolog.Logger
}

// AdminHeaders are on every answer of the Admin API to an address that may ask.
var AdminHeaders = http.Header{
	"Access-Control-Allow-Origin":      {"*"},
	"Access-Control-Allow-Credentials": {"true"},
	"Access-Control-Expose-Headers":    {"*"},
	"Access-Control-Max-Age":           {"3600"},
}

func (a *admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn := begin(w, r, a.server)
	if ip := net.ParseIP(conn.ip); ip == nil || !ip.IsLoopback() {
		WritePage(w, http.StatusForbidden, Name)
		return
	}
	maps.Copy(w.Header(), AdminHeaders)
	status, answer := a.answer(w, r)
	WriteJSON(w, status, "application/json", answer)
}

func (a *admin) answer(w http.ResponseWriter, r *http.Request) (status int, answer any) {
	given := r.Header.Get("X-API-KEY")
	resource, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, adminPath), "/")
	switch {
	case given == "":
		return http.StatusUnauthorized, object{"error_msg": "failed to check token", "description": "missing apikey"}
	case subtle.ConstantTimeCompare([]byte(given), []byte(a.key)) != 1:
		return http.StatusUnauthorized, object{"error_msg": "failed to check token", "description": "wrong apikey"}
	case resource == "plugins" && id == "list" && r.Method == http.MethodGet:
		return http.StatusOK, plugins
	case resource != "routes":
		return http.StatusNotFound, object{"error_msg": "Unsupported resource type: " + resource}
	}
	var value object
	if r.Method == http.MethodPut {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil && len(body) > 0 {
			value, err = parseObject(body)
		}
		if err != nil {
			return http.StatusBadRequest, object{"error_msg": "invalid request body: " + err.Error(), "req_body": string(body)}
		}
	}
	w.Header()["X-API-VERSION"] = []string{"v3"}
	status, answer, err := a.route(r, id, value)
	if err != nil {
		a.log.Warn().Err(err).Msg("the Admin API cannot reach etcd")
		return http.StatusServiceUnavailable, object{"error_msg": "has no healthy etcd endpoint available"}
	}
	return status, answer
}

// route does what is asked of the route id, or of all of them without an id. An
// error is etcd's.
func (a *admin) route(r *http.Request, id string, value object) (status int, answer any, err error) {
	ctx := r.Context()
	switch {
	case r.Method == http.MethodPut:
		return a.put(ctx, id, value)
	case r.Method == http.MethodGet && id == "":
		all, err := a.read(ctx, a.store.all())
		return http.StatusOK, object{"list": all, "total": len(all)}, err
	case r.Method == http.MethodGet && validID(id):
		found, err := a.read(ctx, a.store.one(id))
		if err != nil {
			return 0, nil, err
		}
		if len(found) > 0 {
			return http.StatusOK, found[0], nil
		}
	case r.Method == http.MethodDelete && validID(id):
		found, err := a.store.remove(ctx, id)
		if err != nil || found {
			return http.StatusOK, object{"deleted": "1", "key": a.store.prefix + id}, err
		}
	case r.Method != http.MethodGet && r.Method != http.MethodDelete:
		return http.StatusNotFound, object{"error_msg": "not found"}, nil
	}
	return http.StatusNotFound, object{"message": "Key not found"}, nil
}

func (a *admin) put(ctx context.Context, id string, value object) (status int, answer any, err error) {
	if err := checkRoute(value, id); err != nil {
		return http.StatusBadRequest, object{"error_msg": err.Error()}, nil
	}
	before, err := a.read(ctx, a.store.one(id))
	if err != nil {
		return 0, nil, err
	}
	now := time.Now().Unix()
	value["create_time"], value["update_time"] = now, now
	status = http.StatusCreated
	if len(before) > 0 {
		status = http.StatusOK
		if created := before[0].Value["create_time"]; created != nil {
			value["create_time"] = created
		}
	}
	err = a.store.put(ctx, id, Encode(value))
	return status, object{"key": a.store.prefix + id, "value": value}, err
}

// checkRoute checks a route that is put under id, and writes the id into it.
func checkRoute(value object, id string) error {
	own := value["id"]
	switch {
	case value == nil:
		return errors.New("missing configurations")
	case own != nil && fmt.Sprint(own) != id:
		return errors.New("wrong route id")
	case id == "":
		return errors.New("missing route id")
	case !validID(id):
		return errors.New(`invalid configuration: property "id" validation failed: object matches none of the required`)
	}
	value["id"] = id
	_, err := parseSpec(Encode(value))
	return err
}

var idPattern = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,64}$`)

// validID says whether APISIX takes id as the id of a route.
func validID(id string) bool { return idPattern.MatchString(id) }

// stored is a route as the Admin API shows it.
type stored struct {
	Key           string `json:"key"`
	Value         object `json:"value"`
	CreatedIndex  int64  `json:"createdIndex"`
	ModifiedIndex int64  `json:"modifiedIndex"`
}

// read returns the routes in r. APISIX keeps placeholders beside them, which are
// none.
func (a *admin) read(ctx context.Context, r etcdhttp.Range) ([]stored, error) {
	kvs, _, err := a.store.read(ctx, r)
	found := []stored{}
	for _, kv := range kvs {
		if value, err := parseObject(kv.Value); err == nil {
			found = append(found, stored{string(kv.Key), value, kv.CreateRevision, kv.ModRevision})
		}
	}
	return found, err
}

// Encode writes v as APISIX's JSON library does, with a line end.
func Encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only values that JSON has are ever passed in.
		return []byte("{}\n")
	}
	return buf.Bytes()
}

// statusTexts are nginx's where they differ from net/http's.
var statusTexts = map[int]string{
	clientGone:                    "Client Closed Request",
	http.StatusServiceUnavailable: "Service Temporarily Unavailable",
	http.StatusGatewayTimeout:     "Gateway Time-out",
}

// WritePage answers with nginx's kind of error page, in the name of server.
func WritePage(w http.ResponseWriter, code int, server string) {
	title := fmt.Sprintf("%d %s", code, cmp.Or(statusTexts[code], http.StatusText(code)))
	page := "<html>\r\n<head><title>" + title + "</title></head>\r\n<body>\r\n<center><h1>" + title +
		"</h1></center>\r\n<hr><center>" + server + "</center>\r\n</body>\r\n</html>\r\n"
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(code)
	fmt.Fprint(w, page)
}

// writeError answers with APISIX's kind of error.
func writeError(w http.ResponseWriter, code int, message string) {
	WriteJSON(w, code, "text/plain; charset=utf-8", object{"error_msg": message})
}

// WriteJSON answers chunked, as APISIX does.
func WriteJSON(w http.ResponseWriter, code int, contentType string, v any) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h["Transfer-Encoding"] = chunked
	w.WriteHeader(code)
	// An error is the client's going away, which net/http deals with.
	_, _ = w.Write(Encode(v))
}
