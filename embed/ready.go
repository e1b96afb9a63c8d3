package embed

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"google.golang.org/grpc"

	"armrepro/proxycheck/process"
)

// pollEvery is the pause between two questions whether etcd is ready.
const pollEvery = 2 * time.Millisecond

// release matches a released version. etcd answers "not_decided" before it has
// agreed on one, which a gateway cannot read.
var release = regexp.MustCompile(`^\d+\.\d+\.\d+`)

// awaitGateway polls etcd the way a gateway talks to it until it answers.
// ReadyNotify comes earlier than that.
func awaitGateway(ctx context.Context, endpoint string) error {
	err := process.Poll(ctx, pollEvery, func() error {
		body, err := process.Fetch(ctx, http.MethodGet, endpoint+"/version", "")
		if err != nil {
			return err
		}
		var v struct {
			Cluster string `json:"etcdcluster"`
		}
		if err := json.Unmarshal([]byte(body), &v); err != nil || !release.MatchString(v.Cluster) {
			return fmt.Errorf("it has no version yet: %s", body)
		}
		// The key is "armrepro" in base64, as the JSON gateway wants it.
		_, err = process.Fetch(ctx, http.MethodPost, endpoint+"/v3/kv/range", `{"key":"YXJtcmVwcm8="}`)
		return err
	})
	if err != nil {
		return fmt.Errorf("ask etcd: %w", err)
	}
	return nil
}

// endWith makes every stream end when ctx does. Without it etcd's shutdown
// waits 5 s for each client that holds a watch open.
func endWith(ctx context.Context) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		streamCtx, cancel := context.WithCancel(stream.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return handler(srv, &endingStream{stream, streamCtx})
	}
}

type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *endingStream) Context() context.Context { return s.ctx }
