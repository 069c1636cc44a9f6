"""The HTTP service: search, encode and explain over JSON, and the page.

`app` puts the application together (`create_app`), `run` starts it in one or several workers, at
the sockets of `connections` (which gives up slow clients). Each request passes `guard` (`tokens`,
limits, log, `metrics`) and `service` (which store is asked) on its way to the routes: `routes`,
`document_routes`, `explain_routes`, `state_routes` and `mcp` (tools of assistants). Those read
`bodies`, give what `answers` describes, and ask a store through `asked` and `pool`.
"""
