package proxycheck

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"armrepro/proxycheck/etcdhttp"
)

// EtcdWatch notices when an etcd goes away that this run has not started. It costs
// nothing while all is well: it waits for the end of one request.
type EtcdWatch struct {
	client *etcdhttp.Client
	cfg    Etcd
	key    etcdhttp.Range
	cancel context.CancelFunc
	ended  sync.WaitGroup
	begun  time.Time
	first  etcdState
	// losses are the first times without etcd.
	losses chan etcdLoss
}

// etcdState is what the header of every answer says.
type etcdState struct {
	Member   string `json:"member_id"`
	Revision int64  `json:"revision,string"`
	// Term rises with every election, as after a start.
	Term int64 `json:"raft_term,string"`
}

// etcdLoss is a time without etcd, since the watch began.
type etcdLoss struct {
	from, until time.Duration // until is 0 as long as it is away
	after       etcdState
}

// mostLosses bounds how often is counted that etcd went away.
const mostLosses = 64

// etcdRetry is the time between two attempts to reach an etcd that is away.
const etcdRetry = 200 * time.Millisecond

// WatchEtcd begins to watch. Close ends it.
func WatchEtcd(ctx context.Context, cfg Etcd, prefix string) (*EtcdWatch, error) {
	if prefix == "" {
		prefix = ownEtcdPrefix
	}
	client, err := etcdhttp.New(cfg)
	if err != nil {
		return nil, err
	}
	w := &EtcdWatch{client: client, cfg: cfg, key: etcdhttp.Range{Key: []byte(prefix + "/")}, begun: time.Now(), losses: make(chan etcdLoss, mostLosses)}
	if w.first, err = w.state(ctx); err != nil {
		client.Close()
		return nil, err
	}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.ended.Go(func() { w.run(ctx) })
	return w, nil
}

func (w *EtcdWatch) state(ctx context.Context) (etcdState, error) {
	var answer struct{ Header etcdState }
	err := w.client.Call(ctx, "/v3/kv/range", w.key, &answer)
	return answer.Header, err
}

// run holds a request open that etcd doesn't answer, and looks at etcd each time that
// the request ends: something between them may have ended it.
func (w *EtcdWatch) run(ctx context.Context) {
	for before := w.first; ctx.Err() == nil; {
		resp, err := w.client.Post(ctx, "/v3/watch", map[string]any{"create_request": w.key})
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		loss, failed := etcdLoss{from: time.Since(w.begun)}, false
		for ; loss.until == 0 && ctx.Err() == nil; failed = failed || err != nil {
			if loss.after, err = w.state(ctx); err == nil {
				loss.until = time.Since(w.begun)
			}
			select {
			case <-ctx.Done():
			case <-time.After(etcdRetry):
			}
		}
		same := loss.after.Member == before.Member && loss.after.Term == before.Term && loss.after.Revision >= before.Revision
		if loss.until > 0 && (failed || !same) && len(w.losses) < mostLosses {
			w.losses <- loss
		}
		before = loss.after
	}
}

// Close ends the watch and returns what it has noticed: at most one warning.
func (w *EtcdWatch) Close() []Warning {
	w.cancel()
	w.ended.Wait()
	close(w.losses)
	var losses []etcdLoss
	for loss := range w.losses {
		losses = append(losses, loss)
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	if _, err := w.state(ctx); err != nil {
		losses = append(losses, etcdLoss{from: time.Since(w.begun)})
	}
	w.client.Close()
	if len(losses) == 0 {
		return nil
	}
	first, last := losses[0], losses[len(losses)-1]
	if last.until == 0 {
		return []Warning{{"etcd-lost", fmt.Sprintf("the etcd at %s went away during the run", w.cfg),
			"start etcd and measure again: a gateway without its etcd spends time looking for it"}}
	}
	text := fmt.Sprintf("the etcd at %s went away %s after the gateway was started", w.cfg, first.from.Round(time.Second/10))
	if more := len(losses) - 1; more > 0 {
		text += fmt.Sprintf(" and %d times later", more)
	}
	text += fmt.Sprintf(", for %s", (last.until - last.from).Round(time.Second/10))
	switch {
	case last.after.Revision < w.first.Revision:
		text += ": it was restarted with other data"
	case last.after.Term > w.first.Term:
		text += fmt.Sprintf(": it was restarted or elected another leader (raft term %d, now %d)", w.first.Term, last.after.Term)
	}
	return []Warning{{"etcd-restarted", text, "measure again while etcd stays up: the gateway reads its routes anew, which takes time from requests"}}
}
