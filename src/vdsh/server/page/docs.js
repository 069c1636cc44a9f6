// A file of its own: the policy of the service forbids scripts inside a page.
SwaggerUIBundle({ url: "/openapi.json", dom_id: "#manual", deepLinking: true, validatorUrl: null });
