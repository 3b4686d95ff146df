package sweep

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestWholeWords: a report that names a message excuses no other whose text is a part of it.
func TestWholeWords(t *testing.T) {
	for report, names := range map[string]bool{
		"Order 1": true, "not sent: Order 1.": true, "Order 10, Order 1": true, // the second time
		"not sent: Order 10": false, "PreOrder 1": false, "Order": false,
	} {
		assert.Equal(t, names, statement{text: report}.contains("Order 1"), report)
	}
}
