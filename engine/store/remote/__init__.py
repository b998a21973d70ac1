"""A store that machines share: an object store, a web server or a mounted folder behind the store on this disk."""
