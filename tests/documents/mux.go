package mux

// Router finds the handler of a request. It keeps routes in order.
type Router struct {
	routes []*Route
}

// Match reports whether a route fits.
func (r *Router) Match(req *http.Request) bool {
	for _, route := range r.routes {
		if route.Match(req) {
			return true
		}
	}
	return false
}
