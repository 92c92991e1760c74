package boundary

import "strings"

// A Room is what one package of the module may do.
type Room struct {
	// Ours lists the packages of this module that it may import, by their path
	// below the module's; the root package is ".". A trailing "/..." allows a
	// whole subtree, "..." alone everything.
	Ours []string
	// Modules lists the third-party modules that it may import from.
	Modules []string
	// Pure marks a package without clock, randomness, concurrency and I/O:
	// the rules of [RuleConcurrency], [RuleMapOrder], [RuleClock],
	// [RuleRandom] and [RuleIO] hold there.
	Pure bool
}

const (
	modDNS    = "github.com/miekg/dns"
	modCrypto = "golang.org/x/crypto"
	modNet    = "golang.org/x/net"
	modSys    = "golang.org/x/sys"
	modYAML   = "go.yaml.in/yaml/v4"
	modNotify = "github.com/fsnotify/fsnotify"
	modProm   = "github.com/prometheus/client_golang"
	modKong   = "github.com/alecthomas/kong"
	modBar    = "github.com/schollz/progressbar/v3"
	modHDR    = "github.com/HdrHistogram/hdrhistogram-go"
)

// importable are the packages that people import; examples may use any of them.
var importable = []string{
	".", "apikey", "core", "discovery", "dnszone", "ident", "limiter", "policy", "server", "session", "wire",
}

// Rooms returns the table of the module's packages: path below the module's
// ("." for the root) to [Room]. A path that ends in "/..." stands for every
// package below it. A package that is not in the table is a violation: whoever
// adds one decides here what it may import.
func Rooms() map[string]Room {
	return map[string]Room{
		"apikey":  {Pure: true},
		"ident":   {Pure: true, Modules: []string{modCrypto}},
		"policy":  {Pure: true},
		"wire":    {Pure: true, Ours: []string{"apikey", "ident"}},
		"core":    {Pure: true, Ours: []string{"wire", "policy", "ident", "apikey"}},
		"limiter": {Pure: true, Ours: []string{"wire", "ident"}},
		"sim":     {Pure: true, Ours: []string{"core", "limiter", "policy", "wire", "ident", "apikey"}, Modules: []string{modHDR}},

		"sim/scenarios": {},
		"sim/scenario": {
			Ours:    []string{"sim", "sim/scenarios", "limiter", "policy", "wire", "apikey", "internal/yamlfile"},
			Modules: []string{modYAML, modHDR},
		},
		"internal/simrun":     {Ours: []string{"sim"}},
		"internal/simcompare": {Ours: []string{"sim", "policy", "internal/simrun"}},
		"internal/simtune":    {Ours: []string{"sim", "policy", "apikey", "internal/simrun", "internal/simcompare"}},
		"internal/simreport":  {Ours: []string{"sim", "internal/simcompare", "internal/simtune"}},

		"discovery": {Ours: []string{"ident"}, Modules: []string{modDNS}},
		"dnszone": {
			Ours:    []string{"ident", "internal/filewatch", "internal/yamlfile"},
			Modules: []string{modDNS, modNet, modYAML},
		},
		"internal/udp": {Modules: []string{modSys, modNet}},

		"internal/filewatch":  {Modules: []string{modNotify}},
		"internal/secretfile": {},
		"internal/yamlfile":   {Modules: []string{modYAML}},

		".":       {Ours: []string{"core", "wire", "policy", "ident", "apikey", "discovery", "internal/udp"}},
		"session": {Ours: []string{".", "core", "wire", "policy", "ident", "apikey", "discovery", "internal/udp"}},
		"server": {
			Ours: []string{
				"limiter", "wire", "apikey", "ident", "internal/udp", "dnszone", "internal/filewatch", "internal/secretfile", "internal/yamlfile",
			},
			Modules: []string{modProm, modSys, modYAML},
		},

		// What the command brings besides its flags.
		"internal/demo": {Ours: append([]string{"internal/children"}, importable...)},
		"internal/doctor": {
			Ours: []string{".", "core", "wire", "policy", "ident", "apikey", "discovery", "internal/udp"},
		},
		"internal/roundtrip": {
			Ours:    []string{"core", "wire", "ident", "apikey", "discovery", "internal/udp"},
			Modules: []string{modHDR},
		},
		"internal/load": {
			Ours:    []string{"wire", "policy", "ident", "apikey", "internal/udp", "internal/precise"},
			Modules: []string{modHDR},
		},
		"internal/precise":  {Modules: []string{modSys}},
		"internal/children": {},

		"conformance": {Ours: []string{"policy", "apikey"}},
		"conformance/runner": {
			Ours:    []string{"conformance", "core", "wire", "policy", "ident", "apikey", "internal/children", "internal/udp"},
			Modules: []string{modDNS},
		},
		"conformance/adapter/go":           {Ours: append([]string{"conformance"}, importable...)},
		"conformance/cmd/weir-conformance": {Ours: []string{"conformance", "conformance/runner"}, Modules: []string{modKong}},

		"cmd/weir":     {Ours: []string{"..."}, Modules: []string{modKong, modYAML, modBar, modSys}},
		"examples/...": {Ours: importable},

		// For tests only: no other room lists them.
		"internal/boundary":  {Ours: []string{"internal/gocheck"}},
		"internal/doccheck":  {Ours: []string{"internal/gocheck"}},
		"internal/gocheck":   {},
		"internal/soak":      {Ours: append([]string{"internal/children"}, importable...)},
		"internal/relay":     {Ours: []string{"sim", "internal/udp", "internal/precise"}},
		"internal/reality":   {Ours: append([]string{"sim", "sim/scenario", "internal/children", "internal/relay", "internal/precise"}, importable...)},
		"internal/responder": {Ours: []string{"wire", "ident", "apikey", "discovery", "internal/udp"}},
		"internal/storm":     {},
		"internal/vectors":   {},
	}
}

// room finds the row of a package, and whether there is one.
func room(rooms map[string]Room, pkg string) (Room, bool) {
	if r, ok := rooms[pkg]; ok {
		return r, true
	}
	for {
		i := strings.LastIndexByte(pkg, '/')
		if i < 0 {
			return Room{}, false
		}
		pkg = pkg[:i]
		if r, ok := rooms[pkg+"/..."]; ok {
			return r, true
		}
	}
}

// allows reports whether one of the patterns of a [Room] covers pkg.
func allows(patterns []string, pkg string) bool {
	for _, p := range patterns {
		switch {
		case p == "...", p == pkg:
			return true
		case strings.HasSuffix(p, "/...") && strings.HasPrefix(pkg, strings.TrimSuffix(p, "...")):
			return true
		}
	}
	return false
}
