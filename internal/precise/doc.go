// Package precise waits for an instant more exactly than the runtime's timers do, which are late by
// tens of microseconds to a millisecond on a machine at rest. It is for what sends at a rate.
package precise
