package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weirhq/weir/apikey"
)

type keyNewCmd struct {
	Auth   string   `enum:"aes,cookie,none" default:"aes" placeholder:"MODE" help:"How datagrams are authenticated: aes (the default), cookie or none."`
	ID     uint64   `required:"" placeholder:"N" help:"The key ID, which names the tenant: 0 to 18446744073709551615."`
	Legacy bool     `help:"Issue the legacy format, for clients older than August 2026."`
	Out    string   `type:"path" placeholder:"FILE" help:"Write the key to this new file, readable by its owner only, instead of standard output."`
	Quota  []string `placeholder:"NAME=VALUE" help:"Set a quota; may be repeated. A value that a key cannot hold is rounded, with a note."`
}

// Help is the command's long help.
func (*keyNewCmd) Help() string {
	return `The key holds a secret: keep it where only its users can read it.

Modes: aes encrypts and authenticates every datagram. cookie sends the secret in clear, so whoever sees one datagram can forge every other. none lets anyone who can reach the port forge.

Quotas, with their defaults: rate-buckets=65536, latency-services=1024, metrics-labels=4096, latency-buffer-size=32, dedup-ttl=300ms, rate-window=unlimited. Counts are powers of two. Times are durations or milliseconds.

    umask 077
    weir key new --auth aes --id 7 > shop.key
    weir key new --id 7 --out shop.key
    weir key new --auth cookie --id 8 --quota rate-buckets=1024,dedup-ttl=100ms
    weir key new --id 9 --legacy --quota rate-buckets=50000`
}

// Run issues the key.
func (c *keyNewCmd) Run(std *stdio) error {
	key, err := c.issue(std, rand.Reader)
	if err != nil {
		return err
	}
	if warning := authWarning(key.Auth()); warning != "" {
		std.note("note: %s", warning)
	}
	if c.Out == "" {
		_, err = fmt.Fprintln(std.out, key.Encode())
		return err
	}
	if err := writeSecret(c.Out, key.Encode()+"\n"); err != nil {
		return err
	}
	std.note("wrote %v to %s", key, c.Out)
	return nil
}

// issue makes the key that the flags describe and tells of rounded quotas.
func (c *keyNewCmd) issue(std *stdio, entropy io.Reader) (apikey.Key, error) {
	auth, err := apikey.ParseAuth(c.Auth)
	if err != nil {
		return apikey.Key{}, usage(err)
	}
	asked := apikey.DefaultQuotas()
	if err := setQuotas(&asked, c.Quota); err != nil {
		return apikey.Key{}, usage(err)
	}
	if c.Legacy {
		return issueLegacy(auth, c.ID, asked, entropy)
	}
	held, _ := asked.Round()
	for _, q := range quotas {
		was, is := *q.field(&asked), *q.field(&held)
		if was != is {
			std.note("note: quota %s: a key cannot hold %s; it holds %s", q.name, formatQuota(was, q.unit), formatQuota(is, q.unit))
		}
	}
	return apikey.New(auth, c.ID, held, entropy)
}

// issueLegacy makes a key of the legacy format, which holds any quota but that of
// the window.
func issueLegacy(auth apikey.Auth, id uint64, q apikey.Quotas, entropy io.Reader) (apikey.Key, error) {
	if auth == apikey.AuthNone {
		return apikey.Key{}, usage(errors.New("--legacy: that format has no mode none; use --auth aes or cookie"))
	}
	if q.RateWindow != apikey.DefaultQuotas().RateWindow {
		return apikey.Key{}, usage(errors.New("--legacy: that format has no rate-window; leave the quota out"))
	}
	return apikey.NewLegacy(auth, id, q, entropy)
}

// authWarning says what a mode does not protect from.
func authWarning(a apikey.Auth) string {
	switch a {
	case apikey.AuthNone:
		return "mode none authenticates nothing: anyone who can reach the port can forge"
	case apikey.AuthCookie:
		return "mode cookie sends the secret in clear: whoever sees one datagram can forge every other"
	}
	return ""
}

// writeSecret writes a new file that only its owner can read, or nothing.
func writeSecret(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists and is never overwritten: choose another name or remove it", path)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		// Half a key is of no use to anyone.
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(path))
	}
	return nil
}
