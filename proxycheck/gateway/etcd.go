package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"armrepro/proxycheck/etcdhttp"
	"armrepro/proxycheck/process"
)

// watchFor is how long one watch is held open: etcd says nothing on a watch
// while nothing changes, so this is also how long a connection that died
// silently goes unnoticed.
const watchFor = 30 * time.Second

// store keeps the routes in etcd, the way APISIX does.
type store struct {
	*etcdhttp.Client
	prefix string // of the keys, such as /apisix/routes/
}

// kv is a key with its value and revisions, as etcd writes it in JSON: bytes in
// base64 and numbers as text.
type kv struct {
	Key            []byte `json:"key"`
	Value          []byte `json:"value"`
	CreateRevision int64  `json:"create_revision,string"`
	ModRevision    int64  `json:"mod_revision,string"`
}

// one is the key of the route id, and all those of every route.
func (s *store) one(id string) etcdhttp.Range { return etcdhttp.Range{Key: []byte(s.prefix + id)} }
func (s *store) all() etcdhttp.Range          { return etcdhttp.Under(s.prefix) }

// read returns what is in r and the revision at which it was read.
func (s *store) read(ctx context.Context, r etcdhttp.Range) ([]kv, int64, error) {
	var answer struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
		KVs []kv `json:"kvs"`
	}
	err := s.Call(ctx, "/v3/kv/range", r, &answer)
	return answer.KVs, answer.Header.Revision, err
}

// put writes the route id.
func (s *store) put(ctx context.Context, id string, value []byte) error {
	return s.Call(ctx, "/v3/kv/put", map[string][]byte{"key": []byte(s.prefix + id), "value": value}, nil)
}

// remove deletes the route id and says whether it was there.
func (s *store) remove(ctx context.Context, id string) (bool, error) {
	var answer struct {
		Deleted int64 `json:"deleted,string"`
	}
	err := s.Call(ctx, "/v3/kv/deleterange", s.one(id), &answer)
	return answer.Deleted > 0, err
}

// awaitChange returns when a route has changed since revision, or the time for
// one watch is over.
func (s *store) awaitChange(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, watchFor)
	defer cancel()
	request := map[string]any{"create_request": struct {
		etcdhttp.Range
		StartRevision int64 `json:"start_revision"`
	}{s.all(), revision + 1}}
	resp, err := s.Post(ctx, "/v3/watch", request)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for dec := json.NewDecoder(io.LimitReader(resp.Body, process.MaxAnswerBytes)); ; {
		var answer struct {
			Result struct {
				// Canceled is set when the revision asked for is gone.
				Canceled bool              `json:"canceled"`
				Events   []json.RawMessage `json:"events"`
			} `json:"result"`
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		err := dec.Decode(&answer)
		switch {
		case ctx.Err() != nil, len(answer.Result.Events) > 0:
			return nil
		case err != nil:
			return fmt.Errorf("watch etcd: %w", err)
		case answer.Error.Message != "":
			return fmt.Errorf("watch etcd: %s", answer.Error.Message)
		case answer.Result.Canceled:
			return fmt.Errorf("watch etcd: canceled: revision %d is compacted", revision)
		}
	}
}
