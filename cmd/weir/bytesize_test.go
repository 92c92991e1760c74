package main

import "testing"

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1073741824": 1 << 30, "3KiB": 3 << 10, "512MiB": 512 << 20, "8GiB": 8 << 30,
		"": -1, "0": -1, "-1": -1, "8": 8, "8G": -1, "8 GiB": -1, "GiB": -1, "1.5GiB": -1, "8GiBKiB": -1, "9223372036854775807KiB": -1, "8589934592GiB": -1,
	} {
		var b byteSize
		switch err := b.UnmarshalText([]byte(text)); {
		case err != nil && want >= 0:
			t.Errorf("%q: %v", text, err)
		case err == nil && int64(b) != want:
			t.Errorf("%q is %d, want %d", text, b, want)
		}
	}
	if c := serveCommand(t, "--tenants=tenants.yaml", "--memory-limit=2GiB", "--memory-limit-strict"); true {
		std, _, _ := testIO("", nil)
		if cfg, err := c.config(std); err != nil || cfg.MemoryLimit != 2<<30 || !cfg.MemoryStrict {
			t.Errorf("the limit is %d, strict %v, %v", cfg.MemoryLimit, cfg.MemoryStrict, err)
		}
	}
}
