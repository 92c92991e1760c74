package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/weirhq/weir/examples/internal/lab"
)

// One address sends seven requests, another two.
func Example() {
	defer lab.Start()()
	client, err := newClient()
	if err != nil {
		panic(err)
	}
	defer client.Close()
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	h := &limiter{client: client, next: hello}
	for i, addr := range []string{"a", "a", "a", "b", "a", "a", "a", "a", "b"} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = map[string]string{"a": "192.0.2.1:1000", "b": "192.0.2.2:1000"}[addr]
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(i, addr, w.Code)
	}
	// Output:
	// 0 a 200
	// 1 a 200
	// 2 a 200
	// 3 b 200
	// 4 a 200
	// 5 a 200
	// 6 a 429
	// 7 a 429
	// 8 b 200
}

// Without servers there is no decision; what happens then is a choice.
func Example_failOpen() {
	defer lab.Start()()
	client, err := newClient()
	if err != nil {
		panic(err)
	}
	client.Close() // stands for an outage: every call fails
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	for _, open := range []bool{true, false} {
		w := httptest.NewRecorder()
		h := &limiter{client: client, next: hello, failOpen: open}
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		fmt.Println("fail open:", open, w.Code)
	}
	// Output:
	// fail open: true 200
	// fail open: false 503
}

// With room for two buckets, everybody's and that of one address, there is none for
// that of another address. That is no 429.
func Example_noRoom() {
	defer lab.StartWithRoom(2)()
	client, err := newClient()
	if err != nil {
		panic(err)
	}
	defer client.Close()
	log.SetFlags(0)
	log.SetOutput(lines{})
	defer log.SetOutput(os.Stderr)
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	h := &limiter{client: client, next: hello, failOpen: true}
	for i, addr := range []string{"a", "b", "b", "a"} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = map[string]string{"a": "192.0.2.1:1000", "b": "192.0.2.2:1000"}[addr]
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(i, addr, w.Code)
	}
	// Output:
	// 0 a 200
	// logged: bucket "http/192.0.2.2": the server has no room for another bucket (quota rate_buckets_max)
	// 1 b 503
	// 2 b 503
	// 3 a 200
}

// lines shows what is logged, without what is different each time.
type lines struct{}

func (lines) Write(p []byte) (int, error) {
	_, blame, _ := strings.Cut(strings.TrimSpace(string(p)), "; ")
	fmt.Println("logged:", blame)
	return len(p), nil
}
