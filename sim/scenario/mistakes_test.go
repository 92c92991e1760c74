package scenario

import (
	"strings"
	"testing"
)

// TestMistakes holds what each mistake of form is told as, and where.
func TestMistakes(t *testing.T) {
	const web = "\nclients: {web: {poisson: 5/s, ask: shop}}\nbuckets: {shop: 100/s}\n"
	for _, c := range []struct{ text, want string }{
		{"", "the file is empty, or more than one YAML document"},
		{"length: [", "2:1: not YAML: did not find expected node content"},
		{"- a\n", "1:1: the file must be a mapping with the fields name, purpose, length, "},
		{"purpose: A pause.\n", "1:1: there are no clients; write `clients: {web: {poisson: 100/s, ask: …}}`"},
		{"lengt: 5s" + web, "1:1: the file has no field `lengt`; did you mean `length`?"},
		{"weather: fair" + web, "1:1: the file has no field `weather`; it has name, purpose, length, "},
		{"length: 5s\nlength: 6s" + web, "2:1: `length` is there twice; remove one"},
		{"{[a]: b}", "1:2: a field's name must be a text"},
		{"name: \"a\\e[31m\"" + web, "1:7: "},
		{"purpose: \"\\e[2J\"" + web, "1:10: "},
		{"length: 5" + web, "1:9: `length` must be a duration such as 10s, 250ms or 1.5ms, not \"5\""},
		{"length: -5s" + web, "1:9: `length` must not be below 0"},
		{"length:" + web, "1:8: `length` must be a text"},
		{"policy: fastest unit=5ms" + web, "1:9: `policy`: \"fastest\" is no preset; there are default, strict-oldest, "},
		{"policy: unit=0s" + web, "1:9: `policy`: unit: "},
		{"policy: [default]" + web, "1:9: `policy` must be a text"},
		{"layout: 3" + web, "1:9: `layout` must be 2 or 1"},
		{"auth: AES" + web, "1:7: `auth` must be none, cookie or aes"},
		{"fail_fast: 5" + web, "1:12: `fail_fast` must be a mapping with the fields timeouts, probe"},
		{"refresh: {intervall: 5s}" + web, "1:11: `refresh` has no field `intervall`; did you mean `interval`?"},
		{"quotas: {dedup_ttl: 1.5ms}" + web, "1:21: `dedup_ttl` must be whole milliseconds below 1194 hours, such as 300ms, not 1.5ms"},
		{"quotas: {rate_buckets: many}" + web, "1:24: `rate_buckets` must be a whole number from 0 to 4294967295, not \"many\""},

		{"buckets: shop\nclients: {}", "1:10: `buckets` must be a mapping from names to settings, as in `buckets: {web: {…}}`"},
		{"buckets: {a/b: 100/s}", "1:11: \"a/b\" is no name; take letters, digits, dashes and dots"},
		{"buckets: {a: 100 per s}", "1:14: a limit must be tokens in a window, such as 100/s, 30/m or 100/250ms, not \"100 per s\""},
		{"buckets: {a: 0/s}", "1:14: a limit must be tokens in a window, "},
		{"buckets: {a: {limit: 100}}", "1:11: the bucket has no window; write `limit: 100/s`, or `limit: 100` and `window: 1s`"},
		{"buckets: {a: {limit: 100/s, window: 2s}}", "1:37: `limit` says the window already; write `limit: 100`, or leave `window` out"},
		{"buckets: {a: {window: 2s, limit: 100/s}}", "1:34: `window` is given already; write the number of tokens alone, or leave `window` out"},
		{"buckets: {a: {limit: 100/s, zipf: 1.125}}", "1:35: `zipf` must be a number from 0 to 10 with at most two decimals, such as 1 or 1.05, not \"1.125\""},
		{"buckets: {a: {limit: 100/s, count: 0}}", "1:36: `count` must be a whole number from 1 to 1048576, not \"0\""},
		{"buckets: {a: [100/s]}", "1:14: a bucket must be a mapping with the fields limit, window, count, zipf"},
		{"trackers: {db: {max_sample: 3}}", "1:17: a tracker has no field `max_sample`; did you mean `max_samples`?"},
		{"trackers: [db]", "1:11: `trackers` must be a mapping from names to settings"},
		{"services: {db: {parallel: 0}}", "1:27: `parallel` must be a whole number from 1 to 1048576, or unlimited"},
		{"services: {db: {sample: few}}", "1:25: `sample` must be a whole number from 1 to 1048576, or none"},
		{"services: {db: {queue: -1}}", "1:24: `queue` must be a whole number from 1 to 1048576, or unlimited"},

		{"servers: 27", "1:10: `servers` must be a number from 1 to 26, or a mapping from names to settings, as in "},
		{"servers: [A, B]", "1:10: `servers` must be a mapping from names to settings"},
		{"servers: {A: {pacing: half}}", "1:23: `pacing` must be on or off"},
		{"servers: {'*': {estimator: p95}}", "1:28: `estimator` must be p50, min, p90, p99 or mean, not \"p95\""},
		{"servers: {A: {mode: watch}}", "1:21: `mode` must be enforce or shadow"},
		{"servers: {A: {clock: now}}", "1:22: `clock` must be a duration such as 10s, 250ms or 1.5ms, not \"now\""},
		{"servers: {A: {queue: 1e3}}", "1:22: `queue` must be a whole number from 1 to 1048576, not \"1e3\""},
		{"servers: {A: {worker: 4}}", "1:15: a server has no field `worker`; did you mean `workers`?"},

		{"clients: {web: }", "1:16: clients must be a mapping with the fields count, constant, "},
		{"clients: {web: {ask: shop}}", "1:11: the clients do not say when they ask; write one of constant, poisson, burst, closed and trace, as in `poisson: 100/s`"},
		{"clients: {web: {poisson: 5/s}}", "1:11: the clients do not say what they ask for; write `ask: …` with the name of a bucket"},
		{"clients: {web: {poisson: 5/s, constant: 5/s}}", "1:41: `constant` is a second way to say when the clients ask; write clients of another name for it"},
		{"clients: {web: {poisson: 5}}", "1:26: `poisson` must be a rate such as 500/s, 30/m or \"every 2ms\", not \"5\""},
		{"clients: {web: {poisson: every day}}", "1:26: `poisson` must be a rate "},
		{"clients: {web: {poisson: 0/s}}", "1:26: `poisson` must be a rate "},
		{"clients: {web: {burst: 5}}", "1:24: a burst must be a mapping with the fields size, rate"},
		{"clients: {web: {closed: 0}}", "1:25: `closed` must be a whole number from 1 to 1048576, not \"0\""},
		{"clients: {web: {closed: {thinks: 1ms}}}", "1:26: `closed` has no field `thinks`; did you mean `think`?"},
		{"clients: {web: {trace: arrivals.txt}}", "1:24: `trace` must name a file, as in `trace: file arrivals.txt`, not \"arrivals.txt\""},
		{"clients: {web: {trace: file none.txt}}", "1:24: `trace`: file none.txt cannot be read: "},
		{"clients: {web: {trace: file bad.txt}}", "1:24: `trace`: file bad.txt: line 2: \"soon\" must be a duration such as 1.5ms, not below 0"},
		{"clients: {web: {trace: file below.txt}}", "1:24: `trace`: file below.txt: line 1: \"-1ms\" must be a duration such as 1.5ms, not below 0"},
		{"clients: {web: {trace: file empty.txt}}", "1:24: `trace`: file empty.txt: it has no values; write one a line, as in \"1.5ms 20\""},
		{"clients: {web: {trace: file three.txt}}", "1:24: `trace`: file three.txt: line 1 must be a duration and, if there are several, their number, as in \"1.5ms 20\""},
		{"clients: {web: {trace: file many.txt}}", "1:24: `trace`: file many.txt has more than 4194304 requests"},
		{"clients: {web: {trace: file rtt.hdr}}", "1:24: `trace`: the name of a file must end in .txt, not \"rtt.hdr\""},
		{"clients: {web: {ask: {take: {shop: two}}}}", "1:36: `shop` must be a whole number from 0 to 65535, not \"two\""},
		{"clients: {web: {ask: {take: [shop]}}}", "1:29: `take` must be a mapping from names to settings"},
		{"clients: {web: {ask: {guard: {db: fast}}}}", "1:35: `db` must be a duration such as 10s, 250ms or 1.5ms, not \"fast\""},
		{"clients: {web: {ask: {tokens: 5}}}", "1:23: a request has no field `tokens`; it has take, guard, work, weight"},
		{"clients: {web: {ask: {weight: 0}}}", "1:31: `weight` must be a whole number from 1 to 1048576, not \"0\""},

		{"network: 5ms", "1:10: a link must be a mapping with the fields from, to, between, delay, "},
		{"network: {loss: 0.1}", "1:17: `loss` must be a percentage from 0% to 100% with at most four decimals, such as 1% or 0.05%, not \"0.1\""},
		{"network: {loss: 101%}", "1:17: `loss` must be a percentage "},
		{"network: {loss: 0.00001%}", "1:17: `loss` must be a percentage "},
		{"network: {duplicate: .5%}", "1:22: `duplicate` must be a percentage "},
		{"network: {delay: 5}", "1:18: `delay`: "},
		{"network: {delay: [5ms]}", "1:18: `delay` must be a text"},
		{"clients: {web: {trace: file rtt.hlog}}", "1:24: `trace`: the name of a file must end in .txt, not \"rtt.hlog\""},
		{"network: {delay: file rtt.hdr}", "1:18: `delay`: the name of a file must end in .txt or .hlog, not \"rtt.hdr\""},
		{"network: {delay: file rtt.hlog server 8}", "1:18: `delay`: file rtt.hlog: it has no values of server 8; "},
		{"network: {delay: file bad.txt}", "1:18: `delay`: file bad.txt: line 2: "},
		{"network: [{between: [web]}]", "1:21: `between` must be two ends, as in `between: [web, A]`, or one, "},
		{"network: [{between: [web, A, B]}]", "1:21: `between` must be two ends, "},
		{"network: [{between: {a: b}}]", "1:21: `between` must be a list, as in `between: [ … ]`"},
		{"network: [{from: web, between: [web, A]}]", "1:32: `from` and `to` say the ends already; remove them or `between`"},
		{"network: [{between: [web, A], to: A}]", "1:35: `between` says the ends already; remove it or `to`"},
		{"network: {burst_loss: 5%}", "1:23: `burst_loss` must be a mapping with the fields enter, leave, loss"},
		{"network: {reorder: 5%}", "1:20: `reorder` must be a mapping with the fields chance, late"},

		{"dns: {leave: later}", "1:14: `leave` must be a duration such as 2s, or never"},
		{"dns: {members: A}", "1:16: `members` must be a list, as in `members: [ … ]`"},
		{"dns: {members: [[A]]}", "1:17: `members` must be a text"},

		{"faults: {at: 5s}", "1:9: `faults` must be a list, as in `faults: [ … ]`"},
		{"faults: [{at: 5s}]", "1:10: the fault does not say what goes wrong; write one of partition, loss, delay, pause, slow, kill, forget, clock, dns, work, as in `kill: A`"},
		{"faults: [{kill: A, pause: B}]", "1:27: `pause` is a second fault; write an item of its own for it"},
		{"faults: [{restart: A}]", "1:11: a fault has no field `restart`; it has at, for, partition, "},
		{"faults: [{kill: [A]}]", "1:17: `the server` must be a text"},
		{"faults: [{partition: [A, B]}]", "1:22: `partition` must be a mapping with the fields from, to, between"},
		{"faults: [{partition: {form: A}}]", "1:23: `partition` has no field `form`; did you mean `from`?"},
		{"faults: [{slow: A}]", "1:17: `slow` must be a mapping with the fields server, by"},
		{"faults: [{dns: wrong}]", "1:16: `dns` must be a list of the servers that it names, as in `dns: [A, B]`, or empty, fails or stranger"},

		{"variants: {}\nvariants: {}" + web, "2:11: `variants` is there twice; remove one"},
		{"variants: [a]" + web, "1:11: `variants` must be a mapping from names to settings"},
		{"variants: {a: fast}" + web, "1:15: a variant must be a mapping with the fields that it changes, as in `{policy: fastest-valid}`"},
		{"variants: {a: {name: b}}" + web, "1:16: a variant cannot change `name`; remove it"},
		{"variants: {a: {polcy: default}}" + web, "1:16: the file has no field `polcy`; did you mean `policy`? (in the variant a)"},
	} {
		if _, err := ParseFile([]byte(c.text), mistaken); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s\nis told as  %v\ninstead of  %s", c.text, err, c.want)
		}
	}
}

// TestSenselessScenarios holds where mistakes of sense are told, which the simulator finds.
func TestSenselessScenarios(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"length: 0s", "1:9: `length`: it is above 0 and at most 2400h0m0s"},
		{"length: 5s\nwarmup: 5s", "2:9: `warmup`: it is from 0 to below the length of 5s"},
		{"policy: unit=1s", "1:9: `policy`: "},
		{"quotas: {rate_buckets: 3}", "1:9: apikey: quota RateBuckets: 3 "},
		{"refresh: {min: 10ms}", "1:16: `min`: "},
		{"fail_fast: {timeouts: 5, probe: 1ms}", "1:33: `probe`: "},
		{"buckets: {x: 5/1500us}", "1:14: "},
		{"buckets: {x: {limit: 5, window: 1500us}}", "1:33: 1.5ms is not whole milliseconds "},
		{"trackers: {db: {ttl: 0s}}", "1:22: `ttl`: 0s is not whole milliseconds from 1ms to "},
		{"servers: {'*': {age: 1500ms}}", "1:22: `age`: 1.5s is not whole seconds"},
		{"servers: {B: {skew: 1us}}", "1:21: `skew`: 1µs is not whole milliseconds "},
		{"servers: {B: {clock: 800h}}", "1:22: `clock`: 800h0m0s is not from -720h0m0s to 720h0m0s"},
		{"servers: {web: }", "2:11: there is another \"web\""},
		{"services: {x: {tracker: dc}}", "1:25: `tracker`: there is no tracker \"dc\"; the scenario has no trackers, write `trackers: {dc: {ttl: 10s}}`"},
		{"clients: {x: {poisson: 1/s, ask: shp}}", "1:34: there is no bucket \"shp\"; did you mean \"shop\"?"},
		{"clients: {x: {poisson: 1/s, ask: {take: {shop: 1, user: 2}}}}", "1:51: there is no bucket \"user\"; there are shop"},
		{"clients: {x: {poisson: 1/s, ask: [shop, {guard: {db: 5ms}}]}}", "1:50: there is no tracker \"db\"; the scenario has no trackers, write `trackers: {db: {ttl: 10s}}`"},
		{"clients: {x: {poisson: 1/s, ask: [shop, {weight: 2}]}}", "1:41: it takes nothing and guards nothing"},
		{"clients: {x: {poisson: 1/s, ask: {take: shop, work: db}}}", "1:53: `work`: there is no service \"db\"; the scenario has no services, write `services: {db: {time: 5ms}}`"},
		{"clients: {x: {trace: file back.txt, ask: shop}}", "1:22: 1ms is not from the one before, 2ms, to "},
		{"network: {between: [A, B]}", "1:24: \"A\" and \"B\" are not clients and a server"},
		{"network: [{}, {between: [wbe, A]}]", "1:26: \"wbe\" is no client, group of clients, server or *; did you mean \"web\"?"},
		{"network: {delay: uniform 5ms 1ms}", "1:18: `delay`: distribution uniform 5ms 1ms: the shortest comes first"},
		{"dns: {members: [A, D]}", "1:20: there is no server \"D\"; there are A, B, C"},
		{"faults: [{kill: D7}]", "1:17: there is no server \"D7\"; there are A, B, C"},
		{"faults: [{slow: {by: 1ms}}]", "1:17: there is no server \"\"; there are A, B, C"},
		{"faults: [{clock: {by: 1s}}]", "1:18: \"\" is no client or group of clients; there are web"},
		{"faults: [{clock: {server: A, clients: web}}]", "1:39: `clients`: a step is of a server or of clients; leave one out"},
		{"faults: [{work: {service: db}}]", "1:27: `service`: there is no service \"db\"; the scenario has no services, write `services: {db: {time: 5ms}}`"},
		{"faults: [{dns: [A, X1]}]", "1:20: there is no server \"X1\"; there are A, B, C"},
		{"faults: [{partition: web/9}]", "1:22: \"web/9\" is no client, "},
	} {
		text := c.text
		for _, rest := range []string{"clients: {web: {poisson: 5/s, ask: shop}}", "buckets: {shop: 100/s}"} {
			if name, _, _ := strings.Cut(rest, ":"); !strings.HasPrefix(text, name) {
				text += "\n" + rest
			}
		}
		if strings.HasPrefix(text, "buckets") {
			text = strings.Replace(text, "ask: shop", "ask: x", 1)
		}
		if _, err := ParseFile([]byte(text), mistaken); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s\nis told as  %v\ninstead of  %s", text, err, c.want)
		}
	}
}

// mistaken are the files beside those scenarios.
func mistaken(name string) ([]byte, error) {
	switch name {
	case "bad.txt":
		return []byte("1ms\nsoon\n"), nil
	case "empty.txt":
		return []byte("# nothing\n"), nil
	case "three.txt":
		return []byte("1ms 2 3\n"), nil
	case "below.txt":
		return []byte("-1ms\n"), nil
	case "back.txt":
		return []byte("2ms\n1ms\n"), nil
	case "many.txt":
		return []byte("1ms 4194303\n2ms 2\n"), nil
	}
	return beside(name)
}

// TestAliasesAreBounded holds that a short file does not stand for more than can be read.
func TestAliasesAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("buckets: {shop: 1/s}\nclients:\n  a: &a {poisson: 1/s, ask: [")
	text.WriteString("&r {take: {shop: 1}}" + strings.Repeat(", *r", 1000) + "]}\n")
	for i := range 1000 {
		text.WriteString("  a" + strings.Repeat("x", i+1) + ": *a\n")
	}
	_, err := Parse([]byte(text.String()), nil)
	if err == nil || !strings.Contains(err.Error(), "with its aliases written out the file has more than 131072 fields") {
		t.Errorf("got %v", err)
	}
	if _, err := Parse([]byte("network: &a [*a]\nclients: {w: {poisson: 1/s, ask: [*a]}}\n"), nil); err == nil {
		t.Error("an alias within what it stands for is taken")
	}
	if _, err := ParseFile([]byte("dns: &a {ttl: *a}\nvariants: {x: {dns: *a}}\nclients: {}\n"), nil); err == nil {
		t.Error("an alias within what it stands for is taken")
	}
}
