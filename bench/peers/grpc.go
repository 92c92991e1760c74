//go:build !redis_only

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/gubernator-io/gubernator/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// The names under which the systems are asked; envoy's configuration says the same.
const (
	domain     = "bench"
	descriptor = "key"
)

// grpcLink is a connection over which calls are made, each in a goroutine of its own.
type grpcLink struct {
	conn *grpc.ClientConn
	// call asks for some keys at once, and sets what is said of each. The error is for what there is no
	// answer to at all.
	call func(ctx context.Context, from int, answers []answer) (wrongs, err error)

	fired sync.WaitGroup
}

func dial(job *Job) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+job.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

func openGubernator(_ context.Context, job *Job) (link, error) {
	conn, err := dial(job)
	if err != nil {
		return nil, err
	}
	client := gubernator.NewV1Client(conn)
	return &grpcLink{conn: conn, call: func(ctx context.Context, from int, answers []answer) (wrongs, err error) {
		request := &gubernator.GetRateLimitsReq{Requests: make([]*gubernator.RateLimitReq, len(answers))}
		for i := range answers {
			request.Requests[i] = &gubernator.RateLimitReq{
				Name: domain, UniqueKey: key(from + i), Hits: 1, Limit: job.Limit, Duration: job.Window,
				Algorithm: gubernator.Algorithm_TOKEN_BUCKET, Behavior: gubernator.Behavior_NO_BATCHING,
			}
		}
		response, err := client.GetRateLimits(ctx, request)
		if err != nil {
			return nil, err
		}
		if len(response.Responses) != len(answers) {
			return nil, fmt.Errorf("%d answers to %d questions", len(response.Responses), len(answers))
		}
		for i, one := range response.Responses {
			switch {
			case one.Error != "":
				answers[i].verdict, wrongs = wrong, fmt.Errorf("gubernator: %s", one.Error)
			case one.Status == gubernator.Status_OVER_LIMIT:
				answers[i].verdict = denied
			default:
				answers[i].verdict = granted
			}
		}
		return wrongs, nil
	}}, nil
}

func openEnvoy(_ context.Context, job *Job) (link, error) {
	conn, err := dial(job)
	if err != nil {
		return nil, err
	}
	client := envoy.NewRateLimitServiceClient(conn)
	return &grpcLink{conn: conn, call: func(ctx context.Context, from int, answers []answer) (wrongs, err error) {
		request := &envoy.RateLimitRequest{Domain: domain, Descriptors: make([]*common.RateLimitDescriptor, len(answers))}
		for i := range answers {
			request.Descriptors[i] = &common.RateLimitDescriptor{
				Entries: []*common.RateLimitDescriptor_Entry{{Key: descriptor, Value: key(from + i)}},
			}
		}
		response, err := client.ShouldRateLimit(ctx, request)
		if err != nil {
			return nil, err
		}
		if len(response.Statuses) != len(answers) {
			return nil, fmt.Errorf("%d answers to %d questions", len(response.Statuses), len(answers))
		}
		for i, one := range response.Statuses {
			switch {
			case one.CurrentLimit == nil: // it knows of no limit, and so has decided nothing
				answers[i].verdict, wrongs = wrong, fmt.Errorf("envoy: no limit is configured for this key")
			case one.Code == envoy.RateLimitResponse_OK:
				answers[i].verdict = granted
			case one.Code == envoy.RateLimitResponse_OVER_LIMIT:
				answers[i].verdict = denied
			default:
				answers[i].verdict, wrongs = wrong, fmt.Errorf("envoy: code %v", one.Code)
			}
		}
		return wrongs, nil
	}}, nil
}

func key(n int) string { return "k" + strconv.Itoa(n) }

func (l *grpcLink) probe(ctx context.Context) error {
	var one [1]answer
	wrongs, err := l.call(ctx, -1, one[:]) // a key that no run asks for
	if err == nil {
		err = wrongs
	}
	return err
}

// ask makes a call for keys, and records what comes of it. Without an answer all are wrong.
func (l *grpcLink) ask(r *run, due int64, from, to int) {
	answers := make([]answer, to-from)
	ctx, cancel := context.WithTimeout(context.Background(), drainGrace)
	defer cancel()
	wrongs, err := l.call(ctx, from, answers)
	for i := range answers {
		answers[i].due = due
		if err != nil {
			answers[i].verdict, wrongs = wrong, err
		}
	}
	r.record(answers, wrongs)
}

func (l *grpcLink) closed(r *run, inFlight int) error {
	var all sync.WaitGroup
	for range inFlight {
		all.Go(func() {
			for {
				now := r.now()
				from, to := r.next(now)
				if from >= to {
					return
				}
				l.ask(r, now, from, to)
			}
		})
	}
	all.Wait()
	return nil
}

func (l *grpcLink) fire(r *run, due []int64) error {
	for _, d := range due {
		from, to := r.next(0)
		l.fired.Go(func() { l.ask(r, d, from, to) })
	}
	return nil
}

func (l *grpcLink) drain(context.Context) error {
	l.fired.Wait() // calls have deadlines
	return nil
}

func (l *grpcLink) close() { _ = l.conn.Close() }
