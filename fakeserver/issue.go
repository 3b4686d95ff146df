package fakeserver

// IssueKeyOn is IssueKey in plain types: it makes a key on one of the plans
// preview, free, pro and byok, dashboard-issued or not. With it a Server has
// the abilities that package contract asks of a target.
func (s *Server) IssueKeyOn(plan string, dashboard bool) string {
	return s.IssueKey(KeyOptions{Plan: Plan(plan), NotDashboard: !dashboard})
}
