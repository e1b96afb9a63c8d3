package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"armrepro/proxycheck/etcdhttp"
)

// watchFor is how long one watch is held open: etcd says nothing on a watch
// while nothing changes, so this is also how long a connection that died
// silently goes unnoticed.
const watchFor = 30 * time.Second

// etcd keeps the routes, the way APISIX does.
type etcd struct{ client *etcdhttp.Client }

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

// read returns the keys in r and the revision at which they were read.
func (e *etcd) read(ctx context.Context, r etcdhttp.Range) ([]kv, int64, error) {
	var answer struct {
		Header etcdHeader `json:"header"`
		KVs    []kv       `json:"kvs"`
	}
	err := e.client.Call(ctx, "/v3/kv/range", r, &answer)
	return answer.KVs, answer.Header.Revision, err
}

// put writes a key.
func (e *etcd) put(ctx context.Context, key string, value []byte) error {
	return e.client.Call(ctx, "/v3/kv/put", map[string][]byte{"key": []byte(key), "value": value}, nil)
}

// remove deletes a key and says whether it was there.
func (e *etcd) remove(ctx context.Context, key string) (bool, error) {
	var answer struct {
		Deleted int64 `json:"deleted,string"`
	}
	err := e.client.Call(ctx, "/v3/kv/deleterange", etcdhttp.Range{Key: []byte(key)}, &answer)
	return answer.Deleted > 0, err
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
func (e *etcd) watch(ctx context.Context, r etcdhttp.Range, revision int64, each func(events []event, next int64)) error {
	ctx, cancel := context.WithTimeout(ctx, watchFor)
	defer cancel()
	request := map[string]any{"create_request": struct {
		etcdhttp.Range
		StartRevision int64 `json:"start_revision"`
	}{r, revision}}
	resp, err := e.client.Post(ctx, "/v3/watch", request)
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
