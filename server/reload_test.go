package server

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

const inForce = `msg="tenants in force"`

// ever is a request for one token of a bucket that never forgets and never fills.
func ever() *wire.Request {
	return &wire.Request{
		Layout: wire.Layout2, DedupTTL: 60,
		Resources: []wire.Resource{{Bucket: ident.Bucket("ever", 1<<31, 1<<31), Window: 1 << 31, Rate: 1 << 31, Tokens: 1}},
	}
}

// While the file changes in every way under load, every question is answered and no
// state is lost.
func TestReloadUnderLoad(t *testing.T) {
	newer, older := newKey(t, apikey.AuthAES, 7), newKey(t, apikey.AuthCookie, 7)
	smaller := newKey(t, apikey.AuthAES, 7, func(q *apikey.Quotas) { q.RateBuckets, q.MetricsLabels = 1, 1 })
	other := newKey(t, apikey.AuthAES, 8)
	versions := []string{
		tenantsFile(tenantLine("shop", newer, older)),
		tenantsFile(tenantLine("shop", older, newer), tenantLine("other", other)),
		tenantsFile(tenantLine("renamed", newer, older)),
		tenantsFile(tenantLine("shop", smaller, newer, older), tenantLine("other", other)),
		tenantsFile(strings.Replace(tenantLine("shop", newer, older), "name:", "estimator: p99, name:", 1)),
		"tenants: [{broken",
	}
	path := tempFile(t, versions[0])
	s := start(t, Config{TenantsFile: path})

	stop := make(chan struct{})
	var asked atomic.Uint64
	var clients sync.WaitGroup
	for i, key := range []apikey.Key{newer, older} {
		client := dial(t, key, s.Addrs()[0])
		client.header.UniqueID[15] = byte(i)
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				client.fresh()
				b, _, err := client.exchange(client.request(ever()))
				if err != nil {
					t.Errorf("client %d: a question is not answered: %v", i, err)
					return
				}
				r := client.open(b, wire.Layout2)
				if !r.granted() {
					t.Errorf("client %d: rejected: %+v", i, r.view.Resource(0))
				}
				asked.Add(1)
			}
		})
	}
	driver := dial(t, newer, s.Addrs()[0])
	driver.header.UniqueID[15] = 2
	loads, refusals := 1, 0
	for round := range 4 * len(versions) {
		version := versions[round%len(versions)]
		writeFile(t, path, version)
		_ = s.Reload() // so that no change waits for the watcher to settle
		if strings.Contains(version, "broken") {
			refusals++
		} else {
			loads++
		}
		for range 20 { // load on every version
			driver.acquire(ever())
			asked.Add(1)
		}
	}
	close(stop)
	clients.Wait()
	if got := s.counts.reloads.Load(); got < uint64(loads) {
		t.Errorf("%d versions were put in force, want at least %d", got, loads)
	}
	if got := s.counts.reloadErrors.Load(); got < uint64(refusals) {
		t.Errorf("%d versions were refused, want at least %d", got, refusals)
	}
	r := driver.acquire(ever())
	if got, want := uint64(r.view.Resource(0).Rate), asked.Load()+1; got != want {
		t.Errorf("the bucket has %d tokens, want %d", got, want)
	}
}

// The file is followed however it is replaced.
func TestFileIsFollowed(t *testing.T) {
	a, b := newKey(t, apikey.AuthAES, 1), newKey(t, apikey.AuthAES, 2)
	onlyA, both := tenantsFile(tenantLine("a", a)), tenantsFile(tenantLine("a", a), tenantLine("b", b))
	path := tempFile(t, onlyA)
	s := start(t, Config{TenantsFile: path})

	writeFile(t, path, both) // renamed into place
	s.log.await(t, inForce, 1)
	if r := dial(t, b, s.Addrs()[0]).acquire(checkout(1)); !r.granted() {
		t.Error("the new tenant is not served")
	}
	if err := os.WriteFile(path, []byte(onlyA), 0o600); err != nil { // written in place
		t.Fatal(err)
	}
	s.log.await(t, inForce, 2)
	if s.registry.tenants()[2] != nil {
		t.Error("the tenant that was removed is there")
	}
}

// Kubernetes swaps a symbolic link to a directory.
func TestSymlinkSwap(t *testing.T) {
	a, b := newKey(t, apikey.AuthAES, 1), newKey(t, apikey.AuthAES, 2)
	dir := t.TempDir()
	version := func(name, text string) {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name, "tenants.yaml"), text)
		if err := os.Symlink(name, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..1", tenantsFile(tenantLine("a", a)))
	path := filepath.Join(dir, "tenants.yaml")
	if err := os.Symlink("..data/tenants.yaml", path); err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{TenantsFile: path})
	for i, text := range []string{tenantsFile(tenantLine("a", a), tenantLine("b", b)), tenantsFile(tenantLine("b", b))} {
		version("..v"+string(rune('0'+i)), text)
		s.log.await(t, inForce, 1+i)
	}
	if s.registry.tenants()[1] != nil || s.registry.tenants()[2] == nil {
		t.Error("the last version is not in force")
	}
}

// When the directories above the file are replaced, a reload finds the new file, and
// watches it from then on.
func TestReloadFollowsReplacedDirectories(t *testing.T) {
	a, b := newKey(t, apikey.AuthAES, 1), newKey(t, apikey.AuthAES, 2)
	onlyA, both := tenantsFile(tenantLine("a", a)), tenantsFile(tenantLine("a", a), tenantLine("b", b))
	top := t.TempDir()
	dir := func(name string) string { return filepath.Join(top, name, "conf") }
	for _, name := range []string{"now", "next"} {
		if err := os.MkdirAll(dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir(name), "tenants.yaml"), onlyA)
	}
	path := filepath.Join(dir("now"), "tenants.yaml")
	s := start(t, Config{TenantsFile: path})
	for _, r := range [][2]string{{"now", "old"}, {"next", "now"}} {
		if err := os.Rename(filepath.Join(top, r[0]), filepath.Join(top, r[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	s.log.await(t, inForce, 1)
	writeFile(t, path, both)
	s.log.await(t, inForce, 2)
}

// A file that is refused says why and where, changes nothing, and is not the end.
func TestRefusedFile(t *testing.T) {
	a := newKey(t, apikey.AuthAES, 1)
	good := tenantsFile(tenantLine("a", a))
	path := tempFile(t, good)
	s := start(t, Config{TenantsFile: path})
	client := dial(t, a, s.Addrs()[0])

	const refused = `msg="the tenants file is refused; the tenants stay as they were" error="server: `
	writeFile(t, path, good+"  - {key: "+a.Encode()+"}\n")
	s.log.await(t, refused+path+":3:11: tenant 1 (a) has a key with the key ID 1 too; ", 1)
	if strings.Contains(s.log.String(), a.Encode()) {
		t.Error("the log shows a key")
	}
	if r := client.acquire(ever()); !r.granted() {
		t.Error("the tenant is not served any more")
	}
	if !s.counts.reloadBroken.Load() {
		t.Error("the file counts as good")
	}
	if err := s.Reload(); err == nil || !strings.HasPrefix(err.Error(), "server: "+path+":3:11: ") {
		t.Errorf("Reload returns %v", err)
	}
	s.log.await(t, refused, 2)

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.log.await(t, refused+path+": no such file or directory", 1)
	if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o604); err != nil {
		t.Fatal(err)
	}
	s.log.await(t, "chmod o-rwx", 1)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// It has the text that is in force, and still it is news that it can be read.
	for s.counts.reloadBroken.Load() {
		s.log.await(t, inForce, 1)
	}
	if r := client.acquire(ever()); !r.granted() || r.view.Resource(0).Rate != 2 {
		t.Errorf("state was lost: %+v", r.view.Resource(0))
	}
}

// On addresses that other machines reach, the rule for exposed keys holds at a reload
// as at the start.
func TestReloadExposed(t *testing.T) {
	a := newKey(t, apikey.AuthAES, 1)
	cookie := newKey(t, apikey.AuthCookie, 1)
	path := tempFile(t, tenantsFile(tenantLine("a", a)))
	s := start(t, Config{TenantsFile: path, Listen: []string{"0.0.0.0:0"}})
	writeFile(t, path, tenantsFile(tenantLine("a", a, cookie)))
	if err := s.Reload(); err == nil || !strings.Contains(err.Error(), "set insecure_auth: true on this tenant") {
		t.Errorf("Reload returns %v", err)
	}
	writeFile(t, path, tenantsFile(strings.Replace(tenantLine("a", a, cookie), "name:", "insecure_auth: true, name:", 1)))
	if err := s.Reload(); err != nil {
		t.Error(err)
	}
}

func TestEmptyingTheFile(t *testing.T) {
	a := newKey(t, apikey.AuthAES, 1)
	path := tempFile(t, tenantsFile(tenantLine("a", a)))
	s := start(t, Config{TenantsFile: path})
	writeFile(t, path, "")
	if err := s.Reload(); err == nil || len(s.registry.tenants()) != 1 {
		t.Errorf("an empty file: %v, %d tenants", err, len(s.registry.tenants()))
	}
	writeFile(t, path, "tenants: []\n")
	if err := s.Reload(); err != nil || len(s.registry.tenants()) != 0 {
		t.Errorf("an empty list: %v, %d tenants", err, len(s.registry.tenants()))
	}
	s.log.await(t, inForce+" tenants=0 added=[] removed=[a] changed=[]", 1)
}

// The log names who came, went and changed, whatever changed, and not who stayed the same.
func TestReloadNamesTenants(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	same := Tenant{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 1)}, Name: "same"}
	first := Tenant{Keys: []apikey.Key{key}, Name: "first"}
	s := start(t, Config{Tenants: []Tenant{same, first}})
	set := func(want string, list ...Tenant) {
		t.Helper()
		before := strings.Count(s.log.String(), want)
		if err := s.SetTenants(list); err != nil {
			t.Fatal(err)
		}
		if strings.Count(s.log.String(), want+"\n") != before+1 {
			t.Errorf("the log has no line more of %q:\n%s", want, s.log)
		}
	}
	changes := map[string]func(*Tenant){
		"Keys": func(c *Tenant) {
			c.Keys = []apikey.Key{newKey(t, apikey.AuthAES, 7, func(q *apikey.Quotas) { q.MetricsLabels = 1 })}
		},
		"Name":         func(c *Tenant) { c.Name = "another" },
		"Estimator":    func(c *Tenant) { c.Estimator = limiter.Mean },
		"NoPacing":     func(c *Tenant) { c.NoPacing = true },
		"Shadow":       func(c *Tenant) { c.Shadow = true },
		"MaxRate":      func(c *Tenant) { c.MaxRate = 5 },
		"InsecureAuth": func(c *Tenant) { c.InsecureAuth = true },
	}
	fields := reflect.TypeFor[Tenant]()
	for i := range fields.NumField() {
		change := changes[fields.Field(i).Name]
		if change == nil {
			t.Fatalf("nothing changes %s", fields.Field(i).Name)
		}
		changed := first
		change(&changed)
		set(inForce+" tenants=2 added=[] removed=[] changed=["+changed.Name+"]", changed, same)
		set(inForce+" tenants=2 added=[] removed=[] changed=[first]", first, same)
	}
	set(inForce+" tenants=2 added=[] removed=[] changed=[]", same, first)
	turned := Tenant{Keys: []apikey.Key{key}, Name: "first"}
	set(inForce+" tenants=2 added=[] removed=[] changed=[]", same, turned)
	turned.Keys[0] = newKey(t, apikey.AuthCookie, 7) // in the list that is in force
	set(inForce+" tenants=2 added=[] removed=[] changed=[first]", same, turned)
	set(inForce+" tenants=1 added=[] removed=[first] changed=[]", same)
	set(inForce+" tenants=2 added=[first] removed=[] changed=[]", same, first)
	crowd := []Tenant{same}
	for id := range uint64(20) {
		crowd = append(crowd, Tenant{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 100+id)}})
	}
	const none = "no tenants are left"
	if strings.Contains(s.log.String(), none) {
		t.Errorf("the log says %q while there were some", none)
	}
	set(inForce + " tenants=0 added=[] removed=\"[first same]\" changed=[]")
	if strings.Count(s.log.String(), "level=WARN msg=\""+none) != 1 {
		t.Errorf("the log does not warn %q", none)
	}
	set(inForce + " tenants=0 added=[] removed=[] changed=[]")
	if strings.Count(s.log.String(), none) != 1 {
		t.Errorf("the log warns %q again, when there were none", none)
	}
	set(inForce+` tenants=21 added="[100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 and 5 more]" removed=[] changed=[]`, crowd...)
}

func TestReloadWithoutFile(t *testing.T) {
	tenants := []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}}}
	s := start(t, Config{Tenants: tenants})
	if err := s.Reload(); err == nil {
		t.Error("there is nothing to reload")
	}
	if err := s.SetTenants(nil); err != nil || len(s.registry.tenants()) != 0 {
		t.Errorf("SetTenants: %v", err)
	}
	if err := s.SetTenants(append(tenants, tenants...)); err == nil {
		t.Error("a key ID is there twice")
	}
	if tenants[0].Name != "" {
		t.Error("the caller's list was changed")
	}
	withFile := start(t, Config{TenantsFile: tempFile(t, "tenants: []")})
	if err := withFile.SetTenants(tenants); err == nil {
		t.Error("a file and a list")
	}
}

// A tenant that goes and comes back starts anew, but what it had executed is never
// executed again, not even a datagram of a client whose clock is ahead.
func TestRemovedTenantComesBack(t *testing.T) {
	tenants := []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7)}, Name: "7"}}
	clock := newFakeClock()
	w := newWorker(t, clock, workerRules(), tenants...)
	c := newClient(t, tenants[0].Keys[0])
	c.header.Timestamp = clock.Now().Wall + 5000
	captured := c.request(checkout(1))
	if w.ask(captured) == nil {
		t.Fatal("no answer")
	}
	set := func(list []Tenant) {
		t.Helper()
		if _, err := w.registry.set(clock.Now(), list); err != nil {
			t.Fatal(err)
		}
	}
	set(nil)
	if w.ask(captured) != nil || w.counts.dropped[dropUnknownKey].Load() != 1 {
		t.Errorf("a removed tenant's datagram: dropped %s", drops(w))
	}
	clock.advance(10 * time.Millisecond)
	set(tenants)
	if st := w.registry.tenants()[7].state.stats(); st.Buckets+st.Identities != 0 {
		t.Errorf("the tenant has its state again: %+v", st)
	}
	if w.ask(captured) != nil {
		t.Error("a datagram was executed twice")
	}
	c.next()
	clock.advance(6 * time.Second)
	c.header.Timestamp = clock.Now().Wall
	if w.ask(c.request(checkout(1))) == nil {
		t.Errorf("the tenant is not served again; dropped %s", drops(w))
	}
	set(nil)
	clock.advance(11 * time.Second)
	set(nil)
	if n := len(w.registry.removed); n != 0 {
		t.Errorf("%d removed tenants are remembered when nothing of them can be fresh", n)
	}
}

// A quota that is lowered refuses what is new; one that is raised lets it in.
func TestQuotaChanges(t *testing.T) {
	with := func(buckets uint32) []Tenant {
		return []Tenant{{Keys: []apikey.Key{newKey(t, apikey.AuthAES, 7, func(q *apikey.Quotas) { q.RateBuckets = buckets })}}}
	}
	clock := newFakeClock()
	w := newWorker(t, clock, workerRules(), with(2)...)
	c := newClient(t, with(2)[0].Keys[0])
	ask := func(name string) limiter.Verdict {
		c.next()
		req := checkout(1)
		req.Resources[0].Bucket = ident.Bucket(name, 1000, 10)
		if r := c.open(w.ask(c.request(req)), wire.Layout2); r.granted() {
			return limiter.Granted
		}
		return limiter.Rejected
	}
	for _, step := range []struct {
		quota uint32
		asked string
		want  limiter.Verdict
	}{
		{2, "a", limiter.Granted},
		{2, "b", limiter.Granted},
		{2, "c", limiter.Rejected},
		{1, "b", limiter.Granted},
		{1, "c", limiter.Rejected},
		{4, "c", limiter.Granted},
	} {
		if _, err := w.registry.set(clock.Now(), with(step.quota)); err != nil {
			t.Fatal(err)
		}
		// The quotas are part of the key, whose secret stays.
		if got := ask(step.asked); got != step.want {
			t.Errorf("%s under a quota of %d: %v, want %v", step.asked, step.quota, got, step.want)
		}
	}
}

// A change that cannot be made changes nothing.
func TestSetIsAllOrNothing(t *testing.T) {
	tenant := func(id uint64) Tenant {
		return Tenant{Keys: []apikey.Key{newKey(t, apikey.AuthAES, id)}, Name: string(rune('a' + id))}
	}
	rules := workerRules()
	rules.entropy = bytes.NewReader(make([]byte, 16)) // for one tenant
	r := newRegistry(rules)
	clock := newFakeClock()
	if _, err := r.set(clock.Now(), []Tenant{tenant(1)}); err != nil {
		t.Fatal(err)
	}
	before := r.tenants()[1]
	if _, err := r.set(clock.Now(), []Tenant{tenant(2)}); err == nil {
		t.Fatal("a tenant without a hash seed")
	}
	if len(r.tenants()) != 1 || r.tenants()[1] != before {
		t.Errorf("the tenants are %v", r.tenants())
	}
}
