package catalogue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
)

// saltSize is the size of the salt of an account in bytes.
const saltSize = 32

// salt is the secret of an account with which customers are hashed, see schema.HashCustomer. It is in no export, no
// audit and no answer.
type salt struct {
	Salt []byte `json:"salt"`
}

// SaltOf returns the salt of the account that owns a website; nil: there is none, so no customer is stored.
func (s *Snapshot) SaltOf(website int64) []byte { return s.salts[s.ownerOf(website)] }

// KeepSalt returns the salt of the account that owns a website. It creates one for the first customer of an account.
func (c *Catalogue) KeepSalt(ctx context.Context, website int64) ([]byte, error) {
	known := c.Snapshot()
	if stored := known.SaltOf(website); stored != nil {
		return stored, nil
	}
	account := known.ownerOf(website)
	if account == 0 {
		return nil, fmt.Errorf("unknown_website: websiteId %d is not in the catalogue", website)
	}
	_, err := c.changeRows(ctx, &resource{account, kindAccount, account},
		func(_ []row, known *Snapshot) ([]row, error) {
			if known.salts[account] != nil {
				return nil, nil
			}
			created := salt{make([]byte, saltSize)}
			_, _ = rand.Read(created.Salt) // never fails
			body, err := encodeJSON(created)
			return []row{{key: key{account, kindAccount, account, partSalt}, Version: 1, Body: body}}, err
		})
	return c.Snapshot().salts[account], err
}

// addSalt adds the salt of an account.
func (s *Snapshot) addSalt(r row) error {
	var stored salt
	if err := json.Unmarshal([]byte(r.Body), &stored); err != nil {
		return fmt.Errorf("catalogue: salt of account %d: %w", r.AccountID, err)
	}
	s.salts[r.AccountID] = stored.Salt
	return nil
}
