package gateway

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
	// etcdDown is what APISIX says when no etcd answers.
	etcdDown = "has no healthy etcd endpoint available"
)

// admin is the Admin API: the routes, and the list of plugins.
type admin struct {
	etcd    *etcd
	prefix  string // of the routes' keys, such as /apisix/routes/
	dialect Dialect
	key     string
	server  []string
	log     zerolog.Logger
	// forced is the fault admin-status, 0 without it.
	forced int
}

func (a *admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn := begin(w, r, a.server)
	switch ip := net.ParseIP(conn.ip); {
	case a.forced != 0:
		a.fault(w)
		return
	case ip == nil || !ip.IsLoopback():
		writePage(w, http.StatusForbidden)
		return
	}
	for name, value := range map[string]string{
		"Access-Control-Allow-Origin":      "*",
		"Access-Control-Allow-Credentials": "true",
		"Access-Control-Expose-Headers":    "*",
		"Access-Control-Max-Age":           "3600",
	} {
		w.Header().Set(name, value)
	}
	switch given := r.Header.Get("X-API-KEY"); {
	case given == "":
		a.unauthorized(w, "missing apikey")
	case subtle.ConstantTimeCompare([]byte(given), []byte(a.key)) != 1:
		a.unauthorized(w, "wrong apikey")
	default:
		a.route(w, r)
	}
}

// fault answers with the status that was asked for.
func (a *admin) fault(w http.ResponseWriter) {
	switch a.forced {
	case http.StatusUnauthorized:
		a.unauthorized(w, "wrong apikey")
	case http.StatusForbidden:
		writePage(w, http.StatusForbidden)
	default:
		a.write(w, a.forced, object{"error_msg": etcdDown})
	}
}

// unauthorized answers 401. Only 3.x says why.
func (a *admin) unauthorized(w http.ResponseWriter, why string) {
	answer := object{"error_msg": "failed to check token"}
	if a.dialect == V3 {
		answer["description"] = why
	}
	a.write(w, http.StatusUnauthorized, answer)
}

// route finds the resource and the method.
func (a *admin) route(w http.ResponseWriter, r *http.Request) {
	resource, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, adminPath), "/")
	switch {
	case resource == "plugins" && id == "list" && r.Method == http.MethodGet:
		a.write(w, http.StatusOK, plugins)
	case resource != "routes":
		message := "not found"
		if a.dialect == V3 {
			message = "Unsupported resource type: " + resource
		}
		a.write(w, http.StatusNotFound, object{"error_msg": message})
	case r.Method == http.MethodPut:
		a.put(w, r, id)
	case r.Method == http.MethodGet && id == "":
		a.list(w, r)
	case r.Method == http.MethodGet:
		a.get(w, r, id)
	case r.Method == http.MethodDelete:
		a.remove(w, r, id)
	default:
		a.write(w, http.StatusNotFound, object{"error_msg": "not found"})
	}
}

func (a *admin) put(w http.ResponseWriter, r *http.Request, id string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		a.write(w, http.StatusBadRequest, object{"error_msg": "invalid request body: " + err.Error()})
		return
	}
	if len(body) == 0 {
		a.reject(w, errors.New("missing configurations"))
		return
	}
	value, err := parseObject(body)
	if err != nil {
		a.write(w, http.StatusBadRequest, object{
			"error_msg": "invalid request body: " + err.Error(), "req_body": string(body),
		})
		return
	}
	if err := checkRoute(value, id, a.dialect); err != nil {
		a.reject(w, err)
		return
	}
	before, found, err := a.read(r, id)
	if err != nil {
		a.unavailable(w, err)
		return
	}
	now := time.Now().Unix()
	value["create_time"], value["update_time"] = now, now
	if created := before.value["create_time"]; created != nil {
		value["create_time"] = created
	}
	a.dialect.complete(value)
	if err := a.etcd.put(r.Context(), a.prefix+id, V3.encode(value)); err != nil {
		a.unavailable(w, err)
		return
	}
	status := http.StatusCreated
	if found {
		status = http.StatusOK
	}
	a.answer(w, status, a.dialect.putAnswer(stored{key: a.prefix + id, value: value}))
}

// checkRoute checks a route that is put under id, and writes the id into it.
func checkRoute(value object, id string, d Dialect) error {
	switch own := value["id"].(type) {
	case nil:
	case string:
		if own != id {
			return errors.New("wrong route id")
		}
	case json.Number:
		if own.String() != id {
			return errors.New("wrong route id")
		}
	default:
		return errors.New(badID)
	}
	if id == "" {
		return errors.New("missing route id")
	}
	if !validID(id) {
		return errors.New(badID)
	}
	value["id"] = id
	_, err := parseSpec(value, d)
	return err
}

const badID = `invalid configuration: property "id" validation failed: object matches none of the required`

// validID says whether APISIX takes id as the id of a route.
func validID(id string) bool {
	notInID := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			r != '-' && r != '_' && r != '.'
	}
	return id != "" && len(id) <= 64 && !strings.ContainsFunc(id, notInID)
}

func (a *admin) get(w http.ResponseWriter, r *http.Request, id string) {
	s, found, err := a.read(r, id)
	switch {
	case err != nil:
		a.unavailable(w, err)
	case !found:
		a.notFound(w)
	default:
		a.answer(w, http.StatusOK, a.dialect.getAnswer(s))
	}
}

func (a *admin) list(w http.ResponseWriter, r *http.Request) {
	kvs, _, err := a.etcd.read(r.Context(), etcdhttp.Under(a.prefix))
	if err != nil {
		a.unavailable(w, err)
		return
	}
	var all []stored
	for _, kv := range kvs {
		if s, ok := decode(kv); ok {
			all = append(all, s)
		}
	}
	a.answer(w, http.StatusOK, a.dialect.listAnswer(strings.TrimSuffix(a.prefix, "/"), all))
}

func (a *admin) remove(w http.ResponseWriter, r *http.Request, id string) {
	if !validID(id) {
		a.notFound(w)
		return
	}
	found, err := a.etcd.remove(r.Context(), a.prefix+id)
	switch {
	case err != nil:
		a.unavailable(w, err)
	case !found:
		a.notFound(w)
	default:
		a.answer(w, http.StatusOK, a.dialect.deleteAnswer(a.prefix+id))
	}
}

// read returns the route id from etcd.
func (a *admin) read(r *http.Request, id string) (s stored, found bool, err error) {
	if !validID(id) {
		return stored{}, false, nil
	}
	kvs, _, err := a.etcd.read(r.Context(), etcdhttp.Range{Key: []byte(a.prefix + id)})
	if err != nil || len(kvs) == 0 {
		return stored{}, false, err
	}
	s, found = decode(kvs[0])
	return s, found, nil
}

// decode reads a route from etcd. APISIX keeps placeholders beside them, which
// are none.
func decode(kv kv) (stored, bool) {
	value, err := parseObject(kv.Value)
	return stored{
		key: string(kv.Key), value: value, created: kv.CreateRevision, changed: kv.ModRevision,
	}, err == nil
}

func (a *admin) notFound(w http.ResponseWriter) {
	a.answer(w, http.StatusNotFound, object{"message": "Key not found"})
}

func (a *admin) reject(w http.ResponseWriter, err error) {
	a.answer(w, http.StatusBadRequest, object{"error_msg": err.Error()})
}

// unavailable answers for an etcd that did not.
func (a *admin) unavailable(w http.ResponseWriter, err error) {
	a.log.Warn().Err(err).Msg("the Admin API cannot reach etcd")
	a.answer(w, http.StatusServiceUnavailable, object{"error_msg": etcdDown})
}

// answer is write with the header that 3.x adds once it has read the request.
func (a *admin) answer(w http.ResponseWriter, status int, v any) {
	if a.dialect == V3 {
		w.Header()["X-API-VERSION"] = []string{fmt.Sprint(a.dialect)}
	}
	a.write(w, status, v)
}

func (a *admin) write(w http.ResponseWriter, status int, v any) {
	writeJSON(w, status, "application/json", a.dialect.encode(v))
}
