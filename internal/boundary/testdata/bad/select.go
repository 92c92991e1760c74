// Package bad waits.
package bad

func wait() {
	select {}
}
