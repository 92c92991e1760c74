package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/server"
)

type serveCmd struct {
	Listen     []string             `default:"127.0.0.1:29292" placeholder:"ADDR" help:"UDP address to answer on (${default}); may be repeated. All of them are one server."`
	Workers    int                  `placeholder:"N" help:"Sockets that share each address, each with a worker of its own (one for each processor)."`
	Steering   string               `enum:"on,off" default:"on" placeholder:"MODE" help:"While one worker of an address has more to do than the others, ask some clients to come by another port: on (the default) or off."`
	Bursts     string               `enum:"on,off" default:"on" placeholder:"MODE" help:"Let datagrams of one flow come and go many in one buffer of the system's, where it can do that: on (the default) or off."`
	Receive    server.ReceiveBuffer `name:"receive-buffer" default:"50ms@100000" placeholder:"TIME@RATE" help:"How much may wait in the sockets of an address: what comes in TIME, at RATE datagrams a second (${default})."`
	Tenants    string               `required:"" type:"path" placeholder:"FILE" help:"YAML file that names the tenants and their keys; followed while it changes. The world must not be able to read it."`
	LegacyKeys bool                 `help:"Accept keys of the legacy format for tenants that do not say."`
	Estimator  string               `enum:"p50,min,p90,p99,mean" default:"p50" placeholder:"NAME" help:"What latency guards go by, for tenants that do not say: p50 (the default), min, p90, p99 or mean."`
	DNS        string               `name:"dns" placeholder:"ADDR" help:"Serve DNS for --zone here, over UDP and TCP, with this server as its only member."`
	Zone       string               `placeholder:"ZONE" help:"The zone, such as rl.example.com: each tenant's clients ask for c-<key ID> in it."`
	Advertise  []string             `placeholder:"IP[:PORT]" help:"Address that DNS tells clients instead of that listened on; may be repeated. A wildcard --listen needs it."`
	TTL        time.Duration        `name:"ttl" default:"5s" placeholder:"TIME" help:"How long DNS answers may be kept, whole seconds (${default})."`
	Admin      string               `placeholder:"ADDR" help:"Serve /healthz, /readyz and /metrics over HTTP here: a loopback address."`
	Drain      *time.Duration       `placeholder:"TIME" help:"How long to go on answering after SIGTERM (twice --ttl and 2s with --dns, else no time)."`
	Skew       time.Duration        `default:"5s" placeholder:"TIME" help:"How far a datagram's timestamp may be from this machine's clock (${default})."`
	DedupTTL   time.Duration        `name:"dedup-ttl-cap" default:"2s" placeholder:"TIME" help:"Longest time for which a request may ask to be remembered, besides its key's quota (${default})."`
	Identities int                  `default:"1048576" placeholder:"N" help:"Executed requests and reports that each tenant is remembered by, some 90 bytes each as they come (${default})."`
	AnswerSize int                  `name:"answer-bytes" default:"16777216" placeholder:"N" help:"Memory for the answers kept for repeats, in bytes, per tenant, as it is needed (${default})."`
	MaxLabels  int                  `default:"4096" placeholder:"N" help:"Metrics labels counted apart per tenant, besides its key's quota (${default})."`
	Memory     byteSize             `name:"memory-limit" placeholder:"SIZE" help:"What the state of all tenants may come to hold, in bytes or with KiB, MiB or GiB; tenants that could take more are clamped."`
	Strict     bool                 `name:"memory-limit-strict" help:"Refuse to start, or a changed file, over --memory-limit instead of clamping tenants."`
	LogFormat  string               `enum:"text,json" default:"text" placeholder:"FORMAT" help:"Log in text (the default) or json, to standard error."`
	supervised
}

// Help is the command's long help.
func (*serveCmd) Help() string {
	return `An r-server: it decides requests for the tenants of a file, by UDP. It knows no other server, keeps its state in memory, and has a new ID at every start.

    tenants:
      - name: shop                 # in metrics and logs; the key ID if left out
        key: rl-aes1...
      - name: search
        keys: [rl-aes1..., rl-aes1...]  # rotation: newest first, one key ID
        estimator: p90
        pacing: off                # on by default: a guard that trips paces
        mode: shadow               # evaluate and count, let everything pass
        max_rate: 20000            # datagrams a second; any number by default
      - name: lab
        key: rl-none1...
        insecure_auth: true        # none and cookie keys where others can reach
      - name: old
        key: rl-aes1...
        legacy_keys: true

The file is read again when it changes and on SIGHUP, without losing state or a datagram; a broken one changes nothing and is logged with its line and column. On SIGTERM the server leaves DNS, goes on answering for --drain, and ends; a second signal ends it at once, unless it is a SIGTERM within a second of the first.

The line of the log that says "serving" has the server's ID and the addresses that it is bound to, also for port 0.

Examples:

    weir serve --tenants tenants.yaml
    weir serve --listen 127.0.0.1:29292 --tenants tenants.yaml --dns 127.0.0.1:1053 --zone rl.test --admin 127.0.0.1:9292
    weir serve --listen 0.0.0.0:29292 --listen [::]:29292 --tenants tenants.yaml --log-format json`
}

// Run serves until the context ends, and then for the drain time.
func (c *serveCmd) Run(ctx context.Context, std *stdio) error {
	if processors := processors(); c.Workers == 0 {
		c.Workers = processors
	}
	return c.run(ctx, std, server.New)
}

// processors returns how many processors there are for this process, and gives the Go scheduler one more than that, unless
// the environment says how many it has. A worker waits for datagrams in the system, and holds one of the scheduler's
// processors meanwhile. With all of them held the scheduler's monitor takes them back as often as it can, whether
// somebody needs one or not. Under a real-time policy, and where there is one processor, another thread would keep workers
// waiting for longer than the scheduler does, and there is no more.
var processors = sync.OnceValue(func() int {
	n := runtime.GOMAXPROCS(0)
	if n > 1 && os.Getenv("GOMAXPROCS") == "" && !realTime() {
		runtime.GOMAXPROCS(n + 1)
	}
	return n
})

// run serves with the server that start makes.
func (c *serveCmd) run(ctx context.Context, std *stdio, start func(server.Config) (*server.Server, error)) error {
	hangups := catchHangups()
	defer hangups.stop()
	cfg, err := c.config(std)
	if err != nil {
		return usage(err)
	}
	srv, err := start(cfg)
	if err != nil {
		return inFlags(err)
	}
	defer srv.Close()

	// Standard input's end means that the parent is gone: nobody waits for a drain.
	orphaned, cancel := c.supervise(ctx, std)
	defer cancel()
	stop := context.AfterFunc(orphaned, func() {
		if ctx.Err() == nil {
			srv.Close()
		}
	})
	defer stop()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	serving, ended := context.WithCancel(context.WithoutCancel(ctx))
	defer ended()
	hangups.follow(serving, &tasks, func() { _ = srv.Reload() }) // it logs
	return srv.Run(ctx)
}

// serveFlags are the flags that fields of server.Config come from, where they do not have
// the field's name.
var serveFlags = map[string]string{
	"ReceiveBuffer": "receive-buffer", "DedupTTLCap": "dedup-ttl-cap", "AnswerBytes": "answer-bytes", "MaxLabels": "max-labels", "MemoryLimit": "memory-limit",
}

// inFlags makes an error of a field of the configuration one of the flag it comes from.
func inFlags(err error) error {
	var bad *server.ConfigError
	if !errors.As(err, &bad) {
		return err
	}
	flag, ok := serveFlags[bad.Field]
	if !ok {
		flag = strings.ToLower(bad.Field)
	}
	return usage(fmt.Errorf("--%s: %s", flag, bad.Problem))
}

// config is what the flags make of a server.
func (c *serveCmd) config(std *stdio) (server.Config, error) {
	estimator, err := limiter.ParseEstimator(c.Estimator)
	if err != nil {
		return server.Config{}, err
	}
	if c.Identities < 1 || c.AnswerSize < 1 || c.MaxLabels < 1 {
		return server.Config{}, errors.New("--identities, --answer-bytes and --max-labels must be at least 1")
	}
	// To the package 0 means the default. Whoever writes it means 0.
	if c.Skew <= 0 || c.DedupTTL <= 0 || c.TTL <= 0 {
		return server.Config{}, errors.New("--skew, --dedup-ttl-cap and --ttl must be more than 0; leave one out for its default")
	}
	cfg := server.Config{
		Listen: c.Listen, Workers: c.Workers, NoSteering: c.Steering == "off", NoBursts: c.Bursts == "off", ReceiveBuffer: c.Receive, TenantsFile: c.Tenants, LegacyKeys: c.LegacyKeys, Estimator: estimator,
		Skew: c.Skew, DedupTTLCap: c.DedupTTL,
		Identities: c.Identities, AnswerBytes: c.AnswerSize, MaxLabels: c.MaxLabels,
		MemoryLimit: int64(c.Memory), MemoryStrict: c.Strict,
		DNS: c.DNS, Zone: c.Zone, Advertise: c.Advertise, TTL: c.TTL,
		Admin: c.Admin, Logger: newLog(std, c.LogFormat),
	}
	if c.Drain != nil {
		cfg.Drain = *c.Drain
		if cfg.Drain <= 0 {
			cfg.Drain = server.NoDrain
		}
	}
	return cfg, nil
}
