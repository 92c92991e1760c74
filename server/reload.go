package server

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/filewatch"
)

// watch begins to watch the tenants file. Where that is impossible, [Server.Reload]
// still is not.
func (s *Server) watch() {
	if s.settings.TenantsFile == "" {
		return
	}
	w, err := filewatch.New(s.settings.TenantsFile)
	if err != nil {
		s.log.Warn("the tenants file cannot be watched; after a change send SIGHUP", "error", err)
		return
	}
	s.watcher = w
}

// loadTenants puts the configured tenants in place, at start.
func (s *Server) loadTenants() error {
	if s.settings.TenantsFile == "" {
		return s.SetTenants(s.settings.Tenants)
	}
	return s.readFile(true)
}

// SetTenants replaces the tenants of a server that has no tenants file. The state of
// those who stay, by key ID, stays; that of those who go is freed, and their datagrams
// are dropped. On an error everything stays as it was.
func (s *Server) SetTenants(tenants []Tenant) error {
	if s.settings.TenantsFile != "" {
		return errors.New("server: the tenants come from a file; change that instead")
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	tenants = slices.Clone(tenants)
	exposed, _ := s.settings.exposed()
	if bad := checkTenants(tenants, exposed); bad != nil {
		return bad
	}
	return s.use(tenants)
}

// Reload reads the tenants file again. State is kept and no datagram is lost. A file
// that is broken changes nothing; the error, which is logged too, says what is wrong
// where. The file is found and watched anew, should a directory on the way to it have
// been replaced.
func (s *Server) Reload() error {
	if s.settings.TenantsFile == "" {
		return errors.New("server: there is no tenants file to reload")
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	s.renewWatch()
	return s.reload(true)
}

// renewWatch watches where the file is now, before it is read there.
func (s *Server) renewWatch() {
	if s.watcher == nil {
		return
	}
	if err := s.watcher.Renew(); err != nil {
		s.log.Warn("the tenants file is not watched well", "error", err)
	}
}

// fileChanged reloads the file if its text is another than that in force.
func (s *Server) fileChanged() {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	_ = s.reload(false) // it logs
}

// reload is called with reloading locked. Unless always, a file that is as it was
// when the tenants in force came from it is left at that.
func (s *Server) reload(always bool) error {
	// After a failure a good file is news, even if it is the old one.
	err := s.readFile(always || s.counts.reloadBroken.Load())
	s.counts.reloadBroken.Store(err != nil)
	if err != nil {
		s.counts.reloadErrors.Add(1)
		s.log.Error("the tenants file is refused; the tenants stay as they were", "error", err)
	}
	return err
}

// readFile puts the file's tenants in place, or, unless always, leaves a file alone
// whose text is that of the tenants in force.
func (s *Server) readFile(always bool) error {
	exposed, _ := s.settings.exposed()
	data, tenants, err := readTenants(s.settings.TenantsFile, fileRules{
		legacyKeys: s.settings.LegacyKeys, estimator: s.settings.Estimator, exposed: exposed,
	})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if !always && sum == s.loaded {
		return nil
	}
	if err := s.use(tenants); err != nil {
		return err
	}
	s.loaded = sum
	s.counts.reloads.Add(1)
	return nil
}

// use puts checked tenants in place, in discovery too.
func (s *Server) use(tenants []Tenant) error {
	ch, err := s.registry.set(s.settings.Clock.Now(), tenants)
	if err != nil {
		return err
	}
	if s.dns != nil {
		s.dns.setKeyIDs(s.registry.keyIDs())
	}
	if s.made { // a start that fails later logs nothing but its error
		s.log.Info("tenants in force", "tenants", ch.tenants, "added", some(ch.added), "removed", some(ch.removed), "changed", some(ch.changed))
		if ch.tenants == 0 && len(ch.removed) > 0 {
			s.log.Warn("no tenants are left, so every datagram is dropped (unknown_key) and all state is freed; put the tenants back if that was not meant")
		}
		s.tellRooms(ch.resized)
		s.warnOfTenants()
	}
	return nil
}

// mostNames is how many names a line of the log has; a file can have thousands.
const mostNames = 16

// some returns names in order, and of too many the first ones and how many more there are.
func some(names []string) []string {
	names = slices.Sorted(slices.Values(names))
	if more := len(names) - mostNames; more > 0 {
		return append(names[:mostNames], fmt.Sprintf("and %d more", more))
	}
	return append([]string{}, names...) // none is an empty list in JSON
}
