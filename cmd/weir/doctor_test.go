package main

import (
	"context"
	"strings"
	"testing"

	"github.com/weirhq/weir/apikey"
)

// What was cut short has found out nothing: that is not "degraded".
func TestDoctorIsInterrupted(t *testing.T) {
	key, err := apikey.New(apikey.AuthNone, 7, apikey.DefaultQuotas(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	std, out, told := testIO("", map[string]string{"WEIR_KEY": key.Encode()})
	args := []string{"doctor", "--server=512450938123@127.0.0.1:9"}
	if got := run(ctx, args, std); got != exitNoDecision || out.Len() > 0 || !strings.Contains(told.String(), "context canceled") {
		t.Errorf("status %d, output %q, told %q", got, out, told)
	}
}
