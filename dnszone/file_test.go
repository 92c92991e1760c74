package dnszone

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/storm"
)

func TestParseMembers(t *testing.T) {
	f, err := parseMembers([]byte(`
members:
  - id: 5
    addr: 192.0.2.1:29292
  - {id: 18446744073709551615, addr: [192.0.2.2:1, "[2001:db8::2]:1"]}
  - id: "7"
    addr: &a 192.0.2.3:1
  - {id: 8, addr: *a}
keys: [7, 18446744073709551615]
`))
	if err != nil || !slices.Equal(f.KeyIDs, []uint64{7, 1<<64 - 1}) {
		t.Fatalf("%+v, %v", f, err)
	}
	want := "5@192.0.2.1:29292 7@192.0.2.3:1 8@192.0.2.3:1 18446744073709551615@192.0.2.2:1 18446744073709551615@[2001:db8::2]:1"
	got := endpointsOf(f.Members)
	wantList := strings.Fields(want)
	slices.Sort(wantList)
	if !slices.Equal(got, wantList) {
		t.Errorf("got %v, want %v", got, wantList)
	}
	for text, keys := range map[string][]uint64{"members: []": nil, "members: []\nkeys: []": {}, "# nobody yet\nmembers: []\n": nil} {
		f, err := parseMembers([]byte(text))
		if err != nil || len(f.Members) != 0 || (f.KeyIDs == nil) != (keys == nil) {
			t.Errorf("%q: %+v, %v", text, f, err)
		}
	}
}

func TestMembersFileErrors(t *testing.T) {
	many := "members:\n"
	for i := range MaxRecords + 1 {
		many += fmt.Sprintf("- {id: %d, addr: \"192.0.2.1:1\"}\n", i)
	}
	tests := []struct{ text, want string }{
		{"", "FILE: the file is empty, or more"},
		{"# nothing\n", "FILE: the file is empty, or more"},
		{"members: []\n---\nmembers: []\n", "FILE: the file is empty, or more"},
		{"keys: [1]\n", "FILE:1:1: there is no field `members`"},
		{"members: 5\n", "FILE:1:10: `members` must be a list"},
		{"- id: 5\n", "FILE:1:1: the file must be a mapping"},
		{"members:\n- 5\n", "FILE:2:3: a member must be a mapping"},
		{"members: []\nmember: []\n", `FILE:2:1: the file has no field of this name`},
		{"members:\n- id: 5\n  addr: 192.0.2.1:1\n  name: x\n", `FILE:4:3: a member has no field of this name`},
		{"members:\n- id: 5\n  id: 5\n  addr: 192.0.2.1:1\n", "FILE:3:3: "},
		{"members:\n- addr: 192.0.2.1:1\n", "FILE:2:3: the member has no `id`"},
		{"members:\n- id: 5\n", "FILE:2:3: the member has no `addr`"},
		{"members:\n- id: 5\n  addr: []\n", "FILE:2:3: the member has no `addr`"},
		{"members:\n- id: five\n  addr: 192.0.2.1:1\n", "FILE:2:7: `id` is the server's ID"},
		{"members:\n- id: 05\n  addr: 192.0.2.1:1\n", "FILE:2:7: `id` is the server's ID"},
		{"members:\n- id: -5\n  addr: 192.0.2.1:1\n", "FILE:2:7: `id` is the server's ID"},
		{"members:\n- id: [5]\n  addr: 192.0.2.1:1\n", "FILE:2:7: `id` must be a text"},
		{"members:\n- id: 5\n  addr: [192.0.2.1:1, rl1]\n", "FILE:3:23: `addr` is an IP address"},
		{"members:\n- id: 5\n  addr: 192.0.2.1\n", "FILE:3:9: `addr` is an IP address"},
		{"members:\n- id: 5\n  addr: 0.0.0.0:1\n", "FILE:2:3: member 5: 0.0.0.0:1 is the unspecified"},
		{"members:\n- id: 5\n  addr: 192.0.2.1:1\n- id: 5\n  addr: 192.0.2.2:1\n", "FILE:4:3: a member above has the ID 5 too"},
		{"members: []\nkeys: [x]\n", "FILE:2:8: `keys` is a list of API key IDs"},
		{"members: []\nkeys: 7\n", "FILE:2:7: `keys` must be a list"},
		{"members: [\n", "FILE:2:1: not YAML"},
		{"members:\n\t- id: 5\n", "FILE:2:1: not YAML"},
		{"members: *a\n", "FILE:1:10: not YAML"},
		{many, "FILE:130:3: more than 128 members"},
		{strings.Repeat("#", maxFile+1), "FILE: it is longer than"},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "m.yaml")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := LoadMembers(path)
		if want := "dnszone: " + strings.ReplaceAll(tt.want, "FILE", path); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q:\n got %v\nwant %s…", tt.text, err, want)
		}
	}
	absent := filepath.Join(t.TempDir(), "absent")
	if _, err := LoadMembers(absent); err == nil || strings.Count(err.Error(), absent) != 1 {
		t.Errorf("an absent file: %v", err)
	}
}

// lines collects log lines and tells when one came.
type lines struct {
	mu   sync.Mutex
	b    bytes.Buffer
	came chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.b.Write(b)
	l.mu.Unlock()
	select {
	case l.came <- struct{}{}:
	default:
	}
	return len(b), nil
}

// wait returns when a line with the text is there.
func (l *lines) wait(text string) {
	for {
		l.mu.Lock()
		found := strings.Contains(l.b.String(), text)
		l.mu.Unlock()
		if found {
			return
		}
		<-l.came
	}
}

func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "members.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	z := mustZone(t, Config{Zone: "rl.test"})
	if _, err := Follow(z, path, nil); err == nil {
		t.Fatal("an absent file is followed")
	}
	write("members: [{id: 5, addr: 192.0.2.1:1}]\nkeys: [7]\n")
	log := &lines{came: make(chan struct{}, 1)}
	f, err := Follow(z, path, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if z.Serial() != 2 || len(z.Members()) != 1 {
		t.Fatalf("serial %d, members %v", z.Serial(), z.Members())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(t.Context())
	}()
	write("members: [{id: 5, addr: 192.0.2.1:1}, {id: 6, addr: 192.0.2.2:1}]\nkeys: [7]\n")
	log.wait("serial=3")
	write("members: [{id: 5}]\n")
	log.wait(path + ":1:11: the member has no `addr`")
	if z.Serial() != 3 || len(z.Members()) != 2 {
		t.Errorf("after a broken file: serial %d, members %v", z.Serial(), z.Members())
	}
	write("members: []\n")
	log.wait("serial=4")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f.Reload()
	log.wait("no such file")
	if z.Serial() != 4 {
		t.Errorf("after the file has gone: serial %d", z.Serial())
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	<-done
}

func parseMembersTarget() *storm.Target {
	target := storm.New("FuzzParseMembers", func(t testing.TB, text string) {
		file, err := parseMembers([]byte(text))
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Fatal("an error without a text")
			}
			return
		}
		z, err := New(Config{Zone: "rl.test"})
		if err != nil {
			t.Fatal(err)
		}
		if err := z.Set(file.Members, file.KeyIDs); err != nil {
			t.Fatalf("the file is taken and the zone says: %v", err)
		}
	})
	target.Add("members:\n- id: 5\n  addr: [192.0.2.1:1, \"[2001:db8::1]:1\"]\nkeys: [7]\n")
	target.Add("members: &a [*a]\n")
	target.Add("members: []\nkeys: []\n")
	target.Add("members: [{id: 5, addr: 1.1.1.1:1}, {id: 5, addr: 1.1.1.1:1}]")
	return target
}

func FuzzParseMembers(f *testing.F)      { parseMembersTarget().Fuzz(f) }
func TestStormParseMembers(t *testing.T) { parseMembersTarget().Storm(t) }
