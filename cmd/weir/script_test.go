package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/server"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weir": main})
}

// TestScripts runs testdata/script/*.txtar with the real command, a real
// r-server and a real DNS server, over loopback. Scripts have in their
// environment:
//
//	AES, COOKIE, NONE, LEGACY   keys that the server knows, with the IDs 7 to 10
//	ZONE, RESOLVER, SERVER      where to find it
//	ADDR                        its address alone
//	PATIENT                     a request policy that waits seconds for an answer
//
// and beside the commands of testscript:
//
//	status N weir …             run weir and expect exactly this exit status
//	mode FILE OCTAL             expect a file to have these permissions
//	chmod OCTAL FILE            set them
func TestScripts(t *testing.T) {
	w := newWorld(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			for name, value := range w.env {
				env.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": scriptStatus,
			"mode":   scriptMode,
		},
	})
}

func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func scriptMode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode FILE OCTAL")
	}
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[1] {
		ts.Fatalf("%s has mode %s, want %s", filepath.Base(args[0]), got, args[1])
	}
}

// world is the r-server that scripts ask.
type world struct {
	env map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{env: map[string]string{
		"ZONE": "rl.test",
		// A machine that is slow must not decide a test.
		"PATIENT": "unit=500ms replays=2",
		// Nothing of the machine's own settings.
		"WEIR_KEY": "", "RATELIMITLY_AUTH_KEY": "", "WEIR_DOMAIN": "", "WEIR_ZONE": "", "WEIR_RESOLVER": "",
	}}
	cfg := server.Config{
		Listen:      []string{"127.0.0.1:0"},
		DNS:         "127.0.0.1:0",
		Zone:        "rl.test",
		Drain:       server.NoDrain,
		DedupTTLCap: 2 * time.Second,
	}
	for i, name := range []string{"AES", "COOKIE", "NONE", "LEGACY"} {
		key := worldKey(t, name, uint64(7+i))
		cfg.Tenants = append(cfg.Tenants, server.Tenant{Keys: []apikey.Key{key}, Name: name})
		w.env[name] = key.Encode()
	}
	srv, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.env["RESOLVER"] = srv.DNSAddr().String()
	w.env["ADDR"] = srv.Addrs()[0].String()
	w.env["SERVER"] = fmt.Sprintf("%v@%v", srv.ID(), srv.Addrs()[0])

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := srv.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return w
}

func worldKey(t *testing.T, name string, id uint64) apikey.Key {
	t.Helper()
	q := apikey.DefaultQuotas()
	q.DedupTTL = 2000
	entropy := bytes.NewReader(bytes.Repeat([]byte{byte(id)}, apikey.SecretSize))
	issue, auth := apikey.New, apikey.AuthAES
	switch name {
	case "COOKIE":
		auth = apikey.AuthCookie
	case "NONE":
		auth = apikey.AuthNone
	case "LEGACY":
		issue = apikey.NewLegacy
	}
	key, err := issue(auth, id, q, entropy)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
