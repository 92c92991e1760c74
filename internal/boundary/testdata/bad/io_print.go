// Package bad prints.
package bad

import "fmt"

func show() {
	fmt.Println("hello")
}
