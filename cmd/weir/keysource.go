package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/secretfile"
)

// keySource is where a command's API key comes from: never a flag's value, which
// other users of the machine could see.
type keySource struct {
	KeyFile string `type:"path" placeholder:"FILE" help:"Read the API key from this file, which the world must not be able to read, instead of WEIR_KEY or RATELIMITLY_AUTH_KEY."`
}

// keyVariables are the environment variables that hold a key; the first one set
// counts. Other clients use the second.
var keyVariables = [...]string{"WEIR_KEY", "RATELIMITLY_AUTH_KEY"}

// load returns the key, of either format where legacy says so. Without a key
// anywhere it is the zero Key.
func (s *keySource) load(std *stdio, legacy bool) (apikey.Key, error) {
	text, from, err := s.text(std)
	if err != nil || text == "" {
		return apikey.Key{}, err
	}
	key, err := apikey.ParseAny(text)
	if err != nil {
		return apikey.Key{}, usage(fmt.Errorf("%s: %w", from, err))
	}
	if key.Legacy() && !legacy {
		return apikey.Key{}, usage(fmt.Errorf("%s: the key has the legacy format; add --allow-legacy-key to accept it", from))
	}
	return key, nil
}

// require is load for a command that cannot do without a key.
func (s *keySource) require(std *stdio, legacy bool) (apikey.Key, error) {
	key, err := s.load(std, legacy)
	if err == nil && key.IsZero() {
		err = usage(errors.New("no API key: set WEIR_KEY or RATELIMITLY_AUTH_KEY, or name a file with --key-file"))
	}
	return key, err
}

func (s *keySource) text(std *stdio) (text, from string, err error) {
	if s.KeyFile != "" {
		text, err = readKeyFile(s.KeyFile)
		return text, s.KeyFile, err
	}
	for _, name := range keyVariables {
		if text := strings.TrimSpace(std.getenv(name)); text != "" {
			return text, name, nil
		}
	}
	return "", "", nil
}

// readKeyFile reads a key's text from a file that the world cannot read.
func readKeyFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", usage(fmt.Errorf("key file: %w", err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", usage(fmt.Errorf("key file: %w", err))
	}
	if info.IsDir() {
		return "", usage(fmt.Errorf("key file %s: it is a directory", path))
	}
	if err := secretfile.Check(path, info); err != nil {
		return "", usage(fmt.Errorf("key file %s: %w", path, err))
	}
	text, err := readKey(f)
	if err != nil {
		return "", usage(fmt.Errorf("key file %s: %w", path, err))
	}
	return text, nil
}

// readKey reads a key's text with blanks and line ends around it.
func readKey(r io.Reader) (string, error) {
	const limit = 4096
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return "", err
	}
	if len(b) > limit {
		return "", fmt.Errorf("this is no key: it is longer than %d bytes", limit)
	}
	text := strings.TrimSpace(string(b))
	if text == "" {
		return "", errors.New("it is empty; a key was expected")
	}
	return text, nil
}
