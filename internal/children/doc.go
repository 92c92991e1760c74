// Package children runs the weir command in child processes, for what needs real
// ones: the demo, and the soak test.
//
// A [Family] starts them and sees to it that none is left, however this process
// ends. A [Child] tells from its log when it serves, and can be killed as an
// accident would.
package children
