// Package bad starts a goroutine.
package bad

func start(f func()) {
	go f()
}
