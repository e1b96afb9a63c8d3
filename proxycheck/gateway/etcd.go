package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// etcdTimeout bounds one request to etcd but a watch.
	etcdTimeout = 5 * time.Second
	// watchFor is how long one watch is held open: etcd says nothing on a
	// watch while nothing changes, so this is also how long a connection
	// that died silently goes unnoticed.
	watchFor = 30 * time.Second
)

// etcd speaks to etcd's HTTP/JSON gateway, the way APISIX does.
type etcd struct {
	endpoints []string
	// last is the endpoint that answered last, and is asked first.
	last   atomic.Uint32
	client *http.Client
}

func newEtcd(endpoints []string) *etcd {
	dialer := &net.Dialer{Timeout: etcdTimeout}
	return &etcd{
		endpoints: endpoints,
		client: &http.Client{Transport: &http.Transport{
			DialContext:           dialer.DialContext,
			ResponseHeaderTimeout: etcdTimeout,
			IdleConnTimeout:       time.Minute,
		}},
	}
}

// kv is a key with its value and revisions, as etcd writes it in JSON: bytes in
// base64 and numbers as text.
type kv struct {
	Key            []byte `json:"key"`
	Value          []byte `json:"value"`
	CreateRevision int64  `json:"create_revision,string"`
	ModRevision    int64  `json:"mod_revision,string"`
}

// event is one change of a key.
type event struct {
	// Type is empty for a put, which is the default that JSON leaves out.
	Type string `json:"type"`
	KV   kv     `json:"kv"`
}

func (e event) deleted() bool { return e.Type == "DELETE" }

type etcdHeader struct {
	Revision int64 `json:"revision,string"`
}

type keyRange struct {
	Key      []byte `json:"key"`
	RangeEnd []byte `json:"range_end,omitempty"`
}

// underPrefix is the range of every key that begins with prefix, which ends in
// a byte below 255.
func underPrefix(prefix string) keyRange {
	end := []byte(prefix)
	end[len(end)-1]++
	return keyRange{[]byte(prefix), end}
}

// read returns the keys in r and the revision at which they were read.
func (e *etcd) read(ctx context.Context, r keyRange) ([]kv, int64, error) {
	var answer struct {
		Header etcdHeader `json:"header"`
		KVs    []kv       `json:"kvs"`
	}
	err := e.call(ctx, "/v3/kv/range", r, &answer)
	return answer.KVs, answer.Header.Revision, err
}

// put writes a key.
func (e *etcd) put(ctx context.Context, key string, value []byte) error {
	return e.call(ctx, "/v3/kv/put", map[string][]byte{"key": []byte(key), "value": value}, nil)
}

// remove deletes a key and says whether it was there.
func (e *etcd) remove(ctx context.Context, key string) (bool, error) {
	var answer struct {
		Deleted int64 `json:"deleted,string"`
	}
	err := e.call(ctx, "/v3/kv/deleterange", keyRange{Key: []byte(key)}, &answer)
	return answer.Deleted > 0, err
}

// call makes one request and reads the answer into answer, if that is not nil.
func (e *etcd) call(ctx context.Context, path string, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	resp, err := e.post(ctx, path, request)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && answer != nil {
		err = json.Unmarshal(body, answer)
	}
	if err != nil {
		return fmt.Errorf("read etcd's answer to %s: %w", path, err)
	}
	return nil
}

// watchAnswer is one message of a watch.
type watchAnswer struct {
	Result struct {
		Header   etcdHeader `json:"header"`
		Canceled bool       `json:"canceled"`
		// CompactRevision is set when the revision asked for is gone.
		CompactRevision int64   `json:"compact_revision,string"`
		Events          []event `json:"events"`
	} `json:"result"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// watch calls each with the changes in r since revision, and with the revision
// to go on from. It returns nil when the time for one watch is over.
func (e *etcd) watch(ctx context.Context, r keyRange, revision int64, each func(events []event, next int64)) error {
	ctx, cancel := context.WithTimeout(ctx, watchFor)
	defer cancel()
	request := map[string]any{"create_request": struct {
		keyRange
		StartRevision int64 `json:"start_revision"`
	}{r, revision}}
	resp, err := e.post(ctx, "/v3/watch", request)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for dec := json.NewDecoder(resp.Body); ; {
		var m watchAnswer
		err := dec.Decode(&m)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("watch etcd: %w", err)
		case m.Error != nil:
			return fmt.Errorf("watch etcd: %s", m.Error.Message)
		case m.Result.Canceled:
			return fmt.Errorf("watch etcd: canceled, revision %d is compacted", m.Result.CompactRevision)
		case len(m.Result.Events) > 0:
			each(m.Result.Events, m.Result.Header.Revision+1)
		}
	}
}

// post asks each endpoint in turn until one answers 200. The caller closes the
// body.
func (e *etcd) post(ctx context.Context, path string, request any) (*http.Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	var errs []error
	first := e.last.Load()
	for i := range uint32(len(e.endpoints)) {
		at := (first + i) % uint32(len(e.endpoints))
		resp, err := e.postTo(ctx, e.endpoints[at]+path, body)
		if err == nil {
			e.last.Store(at)
			return resp, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func (e *etcd) postTo(ctx context.Context, url string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		resp.Body.Close()
		return nil, fmt.Errorf("ask etcd: %s answered %s: %s", url, resp.Status, bytes.TrimSpace(text))
	}
	return resp, nil
}
