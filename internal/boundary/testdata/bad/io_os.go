// Package bad reads the environment.
package bad

import "os"

func home() string {
	return os.Getenv("HOME")
}
