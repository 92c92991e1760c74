package weir

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Who imports the client compiles these modules and no others.
func TestThirdPartyModules(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	modules = slices.Compact(modules)
	want := []string{
		"github.com/miekg/dns", "github.com/weirhq/weir",
		"golang.org/x/crypto", "golang.org/x/net", "golang.org/x/sys",
	}
	if !slices.Equal(modules, want) {
		t.Errorf("compiled: %v, want %v", modules, want)
	}
}
