// Package chaos tests instances as processes: they are killed and started again
// while records come in and others ask, and at the end every number must be that
// of a plain fold. It runs over the embedded broker, or over the Kafka that
// STREAMGAUGE_TEST_KAFKA names.
package chaos
