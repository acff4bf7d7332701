//! What lies deeper than any wanted part: read as strictly as the rest and without recursion, since an API server takes
//! more levels than a thread's stack has room for, and stores objects of them.

use super::keys::Scope;
use super::{MOST_LEVELS, RECURSIVE_LEVELS, ScanError, Scanner};

impl Scanner<'_, '_> {
    /// One value.
    pub(super) fn deep_value(&mut self) -> Result<(), ScanError> {
        // Of each list and map that is open; none for a list.
        let mut open: Vec<Option<Scope>> = Vec::new();
        loop {
            // One more was open when the recursion ended.
            if RECURSIVE_LEVELS + 1 + open.len() > MOST_LEVELS {
                return Err(ScanError::TooDeep { at: self.lexer.position() });
            }
            match self.lexer.peek() {
                Some(b'{') => {
                    self.lexer.take();
                    self.lexer.skip_whitespace();
                    if !self.lexer.accept(b'}') {
                        let scope = self.keys.open();
                        self.key(scope)?;
                        open.push(Some(scope));
                        continue;
                    }
                }
                Some(b'[') => {
                    self.lexer.take();
                    self.lexer.skip_whitespace();
                    if !self.lexer.accept(b']') {
                        open.push(None);
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            if !self.next_deep_value(&mut open)? {
                return Ok(());
            }
        }
    }

    /// After a value: up to the next one of the same list or map, or of one around it; whether there is one.
    fn next_deep_value(&mut self, open: &mut Vec<Option<Scope>>) -> Result<bool, ScanError> {
        while let Some(&innermost) = open.last() {
            self.lexer.skip_whitespace();
            let end = if innermost.is_some() { b'}' } else { b']' };
            if !self.lexer.accept(end) {
                self.lexer.expect(b',', "`,` or an end")?;
                self.lexer.skip_whitespace();
                if let Some(scope) = innermost {
                    self.key(scope)?;
                }
                return Ok(true);
            }
            open.pop();
            if let Some(scope) = innermost {
                self.keys.close(scope);
            }
        }
        Ok(false)
    }
}
