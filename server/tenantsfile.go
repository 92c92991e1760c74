package server

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/yamlfile"
	"github.com/weirhq/weir/limiter"
)

// The modes of a tenant, in its file and in metrics.
const (
	modeEnforce = "enforce"
	modeShadow  = "shadow"
)

// fileRules are what a tenants file is read by, besides itself.
type fileRules struct {
	legacyKeys bool
	estimator  limiter.Estimator
	exposed    netip.AddrPort // see checkTenants
}

// readTenants reads a tenants file. An error names the file and, where there is one,
// the place in it, and repeats no key.
func readTenants(path string, rules fileRules) ([]byte, []Tenant, error) {
	data, err := readSecretFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("server: %w", yamlfile.InFile(path, err))
	}
	tenants, err := parseTenants(data, rules)
	if err != nil {
		return nil, nil, fmt.Errorf("server: %w", yamlfile.InFile(path, err))
	}
	return data, tenants, nil
}

// parseTenants reads the text of a tenants file.
func parseTenants(data []byte, rules fileRules) ([]Tenant, error) {
	root, err := yamlfile.Parse(data)
	if err != nil {
		return nil, err
	}
	d := &fileDecoder{rules: rules}
	found := false
	err = yamlfile.Mapping(root, "the file", []yamlfile.Field{{Name: "tenants", Decode: func(n *yaml.Node) error {
		found = true
		return yamlfile.Sequence(n, "tenants", d.tenant)
	}}})
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, yamlfile.At(root, "there is no field `tenants`; write `tenants: []` for none")
	}
	if bad := checkTenants(d.tenants, rules.exposed); bad != nil {
		at := d.marks[bad.tenant].tenant
		if bad.key >= 0 {
			at = d.marks[bad.tenant].keys[bad.key]
		}
		return nil, yamlfile.At(at, "%s", bad.text)
	}
	return d.tenants, nil
}

// fileDecoder collects the tenants of a file and their places in it.
type fileDecoder struct {
	rules   fileRules
	tenants []Tenant
	marks   []tenantMarks
}

// tenantMarks are the places of one tenant in its file.
type tenantMarks struct {
	tenant *yaml.Node
	keys   []*yaml.Node
}

func (d *fileDecoder) tenant(n *yaml.Node) error {
	t := Tenant{Estimator: d.rules.estimator}
	marks := tenantMarks{tenant: n}
	legacy := d.rules.legacyKeys
	single, list := false, false
	addKey := func(n *yaml.Node) error { marks.keys = append(marks.keys, n); return nil }
	err := yamlfile.Mapping(n, "a tenant", []yamlfile.Field{
		{Name: "key", Decode: func(n *yaml.Node) error { single = true; return addKey(n) }},
		{Name: "keys", Decode: func(n *yaml.Node) error { list = true; return yamlfile.Sequence(n, "keys", addKey) }},
		{Name: "name", Decode: func(n *yaml.Node) (err error) { t.Name, err = yamlfile.Text(n, "name"); return err }},
		{Name: "estimator", Decode: func(n *yaml.Node) (err error) { t.Estimator, err = estimator(n); return err }},
		{Name: "pacing", Decode: func(n *yaml.Node) (err error) {
			on, err := onOff(n, "pacing")
			t.NoPacing = !on
			return err
		}},
		{Name: "mode", Decode: func(n *yaml.Node) (err error) { t.Shadow, err = shadow(n); return err }},
		{Name: "max_rate", Decode: func(n *yaml.Node) (err error) { t.MaxRate, err = maxRate(n); return err }},
		{Name: "insecure_auth", Decode: func(n *yaml.Node) (err error) { t.InsecureAuth, err = yamlfile.Bool(n, "insecure_auth"); return err }},
		{Name: "legacy_keys", Decode: func(n *yaml.Node) (err error) { legacy, err = yamlfile.Bool(n, "legacy_keys"); return err }},
	})
	if err != nil {
		return err
	}
	if single && list {
		return yamlfile.At(n, "the tenant has both `key` and `keys`; name all in `keys`, newest first")
	}
	if len(marks.keys) == 0 {
		return yamlfile.At(n, "the tenant has no key; give it `key`, or `keys` with the newest first")
	}
	for _, k := range marks.keys {
		key, err := fileKey(k, legacy)
		if err != nil {
			return err
		}
		t.Keys = append(t.Keys, key)
	}
	d.tenants = append(d.tenants, t)
	d.marks = append(d.marks, marks)
	return nil
}

func fileKey(n *yaml.Node, legacy bool) (apikey.Key, error) {
	text, err := yamlfile.Text(n, "key")
	if err != nil {
		return apikey.Key{}, err
	}
	k, err := apikey.ParseAny(strings.TrimSpace(text))
	if err != nil {
		return apikey.Key{}, yamlfile.At(n, "%s", strings.TrimPrefix(err.Error(), "apikey: "))
	}
	if k.Legacy() && !legacy {
		return apikey.Key{}, yamlfile.At(n, "the key %v has the legacy format; to accept it, set legacy_keys: true on this tenant or start with --legacy-keys", k)
	}
	return k, nil
}

// onOff reads "on" or "off", and what YAML takes for the same.
func onOff(n *yaml.Node, what string) (bool, error) {
	text, err := yamlfile.Text(n, what)
	switch {
	case err == nil && text == "on":
		return true, nil
	case err == nil && text == "off":
		return false, nil
	}
	on, err := yamlfile.Bool(n, what)
	if err != nil {
		return false, yamlfile.At(n, "%s must be on or off", what)
	}
	return on, nil
}

// shadow reads a tenant's mode.
func shadow(n *yaml.Node) (bool, error) {
	switch text, _ := yamlfile.Text(n, "mode"); text {
	case modeShadow:
		return true, nil
	case modeEnforce:
		return false, nil
	}
	return false, yamlfile.At(n, "mode must be %s or %s", modeEnforce, modeShadow)
}

// maxRate reads a number of datagrams a second.
func maxRate(n *yaml.Node) (int, error) {
	text, err := yamlfile.Text(n, "max_rate")
	if err != nil {
		return 0, err
	}
	rate, err := strconv.Atoi(text)
	if err != nil || rate < 1 || rate > maxMaxRate {
		return 0, yamlfile.At(n, "max_rate must be a number of datagrams a second from 1 to %d; leave it out for no bound", maxMaxRate)
	}
	return rate, nil
}

func estimator(n *yaml.Node) (limiter.Estimator, error) {
	text, err := yamlfile.Text(n, "estimator")
	if err != nil {
		return 0, err
	}
	e, err := limiter.ParseEstimator(text)
	if err != nil {
		return 0, yamlfile.At(n, "the estimator is none of %s", estimatorNames)
	}
	return e, nil
}
